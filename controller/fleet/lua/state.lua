-- The state of one lease shard: what lease.lua, budget.lua and shares.lua all know of it. It is put
-- in front of each, as a script in Redis can't load another one.
--
-- KEYS[1] is a hash:
--   names      budget -> slot, msgpack; a slot is never given to another budget
--   budgets    per slot: rate a second, burst, smallest useful grant
--   next       changes that wait for their time, msgpack: {{at, version, {name, rate, burst, unit, ...}}, ...}
--   version    of the policy that the budgets are from
--   clock      of leases: last call, end of learning, longest lease given (ms), run id of the server
--   <pool>     "enforce" or "observe"; per slot: demand, in use, demand below the level, hosts above
--              it, hosts
--   <pool>:<host>         sequence number, time of the last call; per budget: slot * 4 + marks,
--                         demand, grant, in use, expiry
--   <pool>:tokens:<slot>  tokens there, when they were counted, tokens that hosts hold
-- KEYS[2] is a sorted set: <pool>:<host> -> when the first of its leases ends, ms.
-- All numbers are little-endian doubles.

local key, expiries = KEYS[1], KEYS[2]
local BUDGET_WIDTH, SUMS_WIDTH, HEADER, LEASE_WIDTH = 3, 5, 2, 5
local CAPPED, COUNTED = 1, 2 -- marks of a stored lease

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A list of doubles that was saved by save_numbers; an empty one where nothing was.
local function load_numbers(text)
    if not text then
        return {}
    end
    local count = math.floor(#text / 8)
    local numbers = {struct.unpack('<' .. string.rep('d', count), text)}
    numbers[count + 1] = nil -- where the unpacking ended
    return numbers
end

local function save_numbers(numbers)
    return struct.pack('<' .. string.rep('d', #numbers), unpack(numbers))
end

-- Puts budgets {name, rate, burst, unit, ...} into the lists; new names get the next slots.
local function set_budgets(names, budgets, changed)
    for i = 1, #changed, 4 do
        local slot = names[changed[i]]
        if not slot then
            slot = #budgets / BUDGET_WIDTH + 1
            names[changed[i]] = slot
        end
        for field = 1, BUDGET_WIDTH do
            budgets[(slot - 1) * BUDGET_WIDTH + field] = changed[i + field]
        end
    end
end

local function save_budgets(names, budgets, waiting)
    redis.call('HSET', key, 'names', cmsgpack.pack(names), 'budgets', save_numbers(budgets))
    if #waiting > 0 then
        redis.call('HSET', key, 'next', cmsgpack.pack(waiting))
    else
        redis.call('HDEL', key, 'next')
    end
end

-- What has its time now; the rest goes on waiting.
local function apply_due(names, budgets, waiting, now)
    local later = {}
    for _, change in ipairs(waiting) do
        if change[1] <= now then
            set_budgets(names, budgets, change[3])
            redis.call('HSET', key, 'version', change[2])
        else
            later[#later + 1] = change
        end
    end
    save_budgets(names, budgets, later)
    return later
end
