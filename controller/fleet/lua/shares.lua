-- Who has what of the budgets of one shard, for people to look at: writes nothing.
--
-- ARGV: most hosts, most rows.
-- Answers {hosts in all, budgets, rows}: of each budget its name and rate; of each lease that has
-- not ended its <pool>:<host>, budget, demand, grant, ms since the host called, ms that are left,
-- 1 = counted tokens. Numbers are text, so that they keep their fractions.

local most_hosts, most_rows = tonumber(ARGV[1]), tonumber(ARGV[2])
if not most_hosts or not most_rows or most_hosts < 1 then
    return redis.error_reply('ERR shares: how many hosts and rows?')
end

local stored = redis.call('HMGET', key, 'names', 'budgets')
local hosts = redis.call('ZRANGE', expiries, 0, most_hosts - 1)
local names, budgets = {}, load_numbers(stored[2])
local readable, unpacked = pcall(cmsgpack.unpack, stored[1] or '')
if readable and type(unpacked) == 'table' then
    names = unpacked
end

local by_slot, answered = {}, {}
for name, slot in pairs(names) do
    local rate = type(slot) == 'number' and budgets[(slot - 1) * BUDGET_WIDTH + 1]
    if rate and rate > 0 then -- else it is no longer shared
        by_slot[slot] = name
        answered[#answered + 1] = tostring(name)
        answered[#answered + 1] = string.format('%.17g', rate)
    end
end

local now = now_ms()
local rows = {}

local function add_leases(member, list)
    for i = HEADER + 1, #list - LEASE_WIDTH + 1, LEASE_WIDTH do
        local marks, left = list[i] % 4, list[i + 4] - now
        local name = by_slot[(list[i] - marks) / 4]
        if name and left > 0 and #rows < most_rows then
            rows[#rows + 1] = {member, name, string.format('%.17g', list[i + 1]),
                string.format('%.17g', list[i + 2]), string.format('%.0f', now - list[2]),
                string.format('%.0f', left), marks >= COUNTED and 1 or 0}
        end
    end
end

if #hosts > 0 then
    local records = redis.call('HMGET', key, unpack(hosts))
    for i, member in ipairs(hosts) do
        add_leases(member, load_numbers(records[i]))
    end
end
return {redis.call('ZCARD', expiries), answered, rows}
