-- What the hosts of a fleet see of sources that are heavy on them: adds it up over windows of time,
-- and says of which the fleet lets through more than one limit allows.
--
-- KEYS: three hashes: the window that runs, the one before, and one that goes; by its number each
--   window has its own. Source -> "<sum of uses> <hosts>", beside '#', the window's number, and
--   '+', the work for it. Nothing in them is worth keeping for longer than that.
-- ARGV: the window of the host's last call that was answered, 0: none; then for each source: its
--   name, its use on this host in thousandths of the limit, what the host last said of it in that
--   window, and what in the one before.
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
-- In a window, in units of about 3 us, which a row takes; a call takes some more. For all 16 keys
-- this is a third of Redis's time.
local MOST_WORK = 10000
local WORK_OF_CALL = 4
local TAKEN, BUSY, FULL = 0, 1, 2

local last = tonumber(ARGV[1])
local rows = (#ARGV - 1) / 4
if not last or rows ~= math.floor(rows) or rows > MOST_ROWS then
    return redis.error_reply('ERR sources: a window and rows of four are wanted')
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
local work = tonumber(of[2] or 0) or 0
if tonumber(of[1] or 0) ~= number then
    redis.call('UNLINK', current)
    work = 0
end
if rows == 0 then
    return {number, TAKEN}
end
if work >= MOST_WORK and last ~= number then
    return {number, BUSY}
end

local names = {}
for row = 1, rows do
    local name, use = ARGV[row * 4 - 2], tonumber(ARGV[row * 4 - 1])
    if #name < 2 or #name > MOST_NAME or not (use and use >= 0 and use <= MOST_USE) or
        not tonumber(ARGV[row * 4]) or not tonumber(ARGV[row * 4 + 1]) then
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
local fields = {'#', number, '+', work + WORK_OF_CALL + rows}
local answer = {number, TAKEN}
for row = 1, rows do
    local use = math.floor(tonumber(ARGV[row * 4 - 1]))
    local said, said_before = tonumber(ARGV[row * 4]), tonumber(ARGV[row * 4 + 1])
    if last ~= number then
        said, said_before = 0, last == number - 1 and said or 0
    end
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
    -- With what this host sees now: an estimate that falls is not to be divided by a higher one.
    sum = math.max(sum, math.max(0, sum_before - said_before) + use)
    hosts = math.max(hosts, hosts_before)
    if sum > LIMIT then
        local n = #answer
        answer[n + 1], answer[n + 2], answer[n + 3] = row - 1, sum, hosts
    end
end
redis.call('HSET', current, unpack(fields))
return answer
