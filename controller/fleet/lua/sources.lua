-- What the hosts of a fleet see of sources that are heavy on them: adds it up over windows of time,
-- and says of which the fleet lets through more than one limit allows.
--
-- KEYS: three hashes: the window that runs, the one before, and one that goes; by its number each
--   window has its own. Source -> "<sum of uses> <hosts>", beside '#', the window's number, and
--   '+', the calls in it. Nothing in them is worth keeping for longer than that.
-- ARGV: the window of the host's last call that was answered, 0: none; then for each source: its
--   name, its use on this host in thousandths of the limit, what the host said of it in that call.
-- Answers the number of the window and what became of the call (below), then for each source that
-- is above its limit: its place among the rows, the sum of uses, on how many hosts.
--
-- An answer that is lost makes a host count twice in its window: for two windows the fleet takes
-- the source for heavier than it is.

local WINDOW = 1500 -- ms: hosts call each second, so each is in every window
local LIMIT = 1000 -- thousandths
local MOST_ROWS = 1000
local MOST_NAME = 160 -- bytes
local MOST_USE = 1000000
-- In a window: over 16 keys and three windows at most 25 MiB of Redis's memory.
local MOST_SOURCES = 4096
-- In a window: beyond that the calls of 16 keys would take Redis more than half of its time.
local MOST_CALLS = 2000
local TAKEN, BUSY, FULL = 0, 1, 2

local last = tonumber(ARGV[1])
local rows = (#ARGV - 1) / 3
if not last or rows ~= math.floor(rows) or rows > MOST_ROWS then
    return redis.error_reply('ERR sources: a window and rows of three are wanted')
end
local time = redis.call('TIME')
local number = math.floor((time[1] * 1000 + math.floor(time[2] / 1000)) / WINDOW)
local current = KEYS[number % 3 + 1]
local before = KEYS[(number - 1) % 3 + 1]

redis.call('UNLINK', KEYS[(number + 1) % 3 + 1])
if tonumber(redis.call('HGET', before, '#') or 0) ~= number - 1 then
    redis.call('UNLINK', before)
end
local of = redis.call('HMGET', current, '#', '+')
local calls = tonumber(of[2] or 0) or 0
if tonumber(of[1] or 0) ~= number then
    redis.call('UNLINK', current)
    calls = 0
end
if rows == 0 then
    return {number, TAKEN}
end
if calls >= MOST_CALLS and last ~= number then
    return {number, BUSY}
end

local names = {}
for row = 1, rows do
    local name, use, said = ARGV[row * 3 - 1], tonumber(ARGV[row * 3]), tonumber(ARGV[row * 3 + 1])
    if #name < 2 or #name > MOST_NAME or not said or not (use and use >= 0 and use <= MOST_USE) then
        return redis.error_reply('ERR sources: row ' .. row .. ' makes no sense')
    end
    names[row] = name
end

-- Nothing where it is none.
local function parse(text)
    local sum, hosts = string.match(text or '', '^(%d+) (%d+)$')
    return tonumber(sum) or 0, tonumber(hosts) or 0
end

local sums, sums_before = redis.call('HMGET', current, unpack(names)),
    redis.call('HMGET', before, unpack(names))
local room = MOST_SOURCES - redis.call('HLEN', current)
local fields = {'#', number, '+', calls + (last == number and 0 or 1)}
local answer = {number, TAKEN}
for row = 1, rows do
    local use = math.floor(tonumber(ARGV[row * 3]))
    local said = last == number and tonumber(ARGV[row * 3 + 1]) or 0
    local sum, hosts = parse(sums[row])
    sum = math.max(0, sum - said) + use
    hosts = hosts + (said == 0 and 1 or 0)
    if sums[row] or room > 0 then
        room = room - (sums[row] and 0 or 1)
        fields[#fields + 1], fields[#fields + 2] = names[row], string.format('%d %d', sum, hosts)
    else
        answer[2] = FULL
    end
    local sum_before, hosts_before = parse(sums_before[row])
    sum, hosts = math.max(sum, sum_before), math.max(hosts, hosts_before)
    if sum > LIMIT then
        local n = #answer
        answer[n + 1], answer[n + 2], answer[n + 3] = row - 1, sum, hosts
    end
end
redis.call('HSET', current, unpack(fields))
return answer
