-- Sets budgets of one shard, at once or at a time of this server's clock.
--
-- ARGV: policy version; when, in ms since 1970, 0 = now; then for each budget its name, rate a
-- second (0 = no longer shared), burst, smallest useful grant.
-- Answers {'ok' | 'older' | 'full', version in force}: a version below the one in force changes
-- nothing.

local MOST_BUDGETS = 512 -- a list must fit on Lua's stack
local MOST_WAITING = 64 -- begin and end of a day's schedules

local version, at = tonumber(ARGV[1]), tonumber(ARGV[2])
if not version or not at or #ARGV < 6 or #ARGV % 4 ~= 2 then
    return redis.error_reply('ERR budgets: version, time and budgets of four values are wanted')
end
local changed = {}
for i = 3, #ARGV, 4 do
    changed[i - 2] = ARGV[i]
    for field = 1, BUDGET_WIDTH do
        local value = tonumber(ARGV[i + field])
        if not value or not (value >= 0 and value <= 1e15) then
            return redis.error_reply('ERR budgets: no number: ' .. ARGV[i + field])
        end
        changed[i - 2 + field] = value
    end
end

local stored = redis.call('HMGET', key, 'version', 'names', 'budgets', 'next')
local in_force = tonumber(stored[1] or 0) or 0
if version < in_force then
    return {'older', in_force}
end

-- What can't be read is as good as lost: whoever leases from it will write it again.
local readable, names, budgets, waiting = pcall(function()
    return stored[2] and cmsgpack.unpack(stored[2]) or {}, load_numbers(stored[3]),
        stored[4] and cmsgpack.unpack(stored[4]) or {}
end)
if not readable or type(names) ~= 'table' or type(waiting) ~= 'table' or
    #budgets % BUDGET_WIDTH ~= 0 then
    names, budgets, waiting = {}, {}, {}
end
local now = now_ms()
local kept = {}
for _, change in ipairs(waiting) do
    -- A new version brings its own schedule; the same change again takes the place of the first.
    local same = change[1] == at and change[2] == version and change[3][1] == changed[1]
    if change[2] >= version and not same then
        kept[#kept + 1] = change
    end
end
if #budgets / BUDGET_WIDTH + #changed / 4 > MOST_BUDGETS or #kept >= MOST_WAITING then
    return {'full', in_force}
end
kept[#kept + 1] = {at, version, changed}
table.sort(kept, function(a, b) return a[1] < b[1] end)
apply_due(names, budgets, kept, now)
return {'ok', at <= now and version or in_force}
