-- Leases shares of one shard's budgets to one host. state.lua says what is stored.
--
-- ARGV: pool, host, run id of the server as the caller knows it, sequence number, the last one
-- whose answer was taken, ms since that call was sent, wanted renewal period (ms), what the
-- host's whole round costs this server (µs), longest lease it has heard of (ms), number of rows,
-- rows: name (a byte of length in front), demand, claim, 1 = idle.
-- Answers one string: status, ms to the next call, length of a lease, of an idle one, longest
-- lease (ms), hosts; then per row: marks, grant, burst, budget.

local OK, LEARNING, DUPLICATE = 0, 1, 2
local SATURATED, TOKENS, UNKNOWN, AWAITED = 1, 2, 4, 8 -- marks of an answered row

local GRACE = 100 -- ms that a lease lasts longer here than at its host
local LEASE_PERIODS = 2.5 -- length of a lease: two lost calls end nothing
local IDLE_PERIOD = 5000 -- ms
local FLOOR = 0.01 -- of the budget, divided equally whatever is asked for
local SPARE_GIVEN = 0.5 -- of what nobody asks for; the rest waits here for whoever spikes
local FEWEST_UNITS = 16 -- a rate that yields less in a lease is given as counted tokens
local MOST_RELEASED = 4 -- ended hosts that one call takes away
local CPU_SHARE = 0.4 -- of a core that all calls together may use
local JUMP = 250 -- ms by which clocks disagree before it is a jump: above a retransmission
local NOTABLE = 0.98 -- a grant that falls less is acknowledged with the next renewal
local MOST_ROWS = 512 -- the budgets of a shard
local HUGE = 1e15

local pool, host, run = ARGV[1], ARGV[2], ARGV[3]
local header = {}
for i = 4, 10 do
    header[i] = tonumber(ARGV[i])
    if not header[i] or not (header[i] >= 0 and header[i] <= HUGE) then
        return redis.error_reply('ERR lease: no number: ' .. tostring(ARGV[i]))
    end
end
local seq, acked, since, period, cost, longest = header[4], header[5], header[6], header[7],
    header[8], header[9]
if pool ~= 'enforce' and pool ~= 'observe' or not ARGV[11] or header[10] > MOST_ROWS then
    return redis.error_reply('ERR lease: no such pool, or too many rows')
end
local rows = {struct.unpack('<' .. string.rep('Bc0ddB', header[10]), ARGV[11])}
local member = pool .. ':' .. host
local now = now_ms()

-- Read outside of the protected part, so that a key of another type is the caller's error.
local stored = redis.call('HMGET', key, 'clock', 'names', 'budgets', 'next', pool, member)
local ended = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, MOST_RELEASED)
local hosts = redis.call('ZCARD', expiries)

local function finite(value)
    return value >= 0 and value <= HUGE and value or 0
end

-- The sums of each pool, and the tokens of counted budgets, are loaded when they are first needed.
local slots = 0
local sums = {}

local function sums_of(name)
    if not sums[name] then
        local text = name == pool and stored[5] or redis.call('HGET', key, name)
        local list = load_numbers(text)
        for i = #list + 1, slots * SUMS_WIDTH do
            list[i] = 0
        end
        sums[name] = list
    end
    return sums[name]
end

local purses = {}

local function purse_of(name, slot)
    local field = name .. ':tokens:' .. slot
    if not purses[field] then
        local list = load_numbers(redis.call('HGET', key, field))
        purses[field] = {list[1] or 0, list[2] or now, list[3] or 0}
    end
    return purses[field]
end

-- Takes the lease at `i` of a host's list out of the sums of its pool.
local function release(name, list, i)
    local marks = list[i] % 4
    local slot = (list[i] - marks) / 4
    local all, at = sums[name] or sums_of(name), (slot - 1) * SUMS_WIDTH
    all[at + 1] = all[at + 1] - list[i + 1]
    if marks >= COUNTED then
        local purse = purse_of(name, slot)
        purse[3] = math.max(0, purse[3] - list[i + 3])
        marks = marks - COUNTED
    else
        all[at + 2] = all[at + 2] - list[i + 3]
    end
    if marks == CAPPED then
        all[at + 4] = all[at + 4] - 1
    else
        all[at + 3] = all[at + 3] - list[i + 1]
    end
    all[at + 5] = all[at + 5] - 1
    if all[at + 5] == 0 then -- rounding does not add up over the years
        all[at + 1], all[at + 2], all[at + 3], all[at + 4] = 0, 0, 0, 0
    end
end

-- Drops what has ended; nil where nothing is left, else what is left and when the first of it ends.
local function without_ended(name, list)
    local kept, first = {list[1], list[2]}, nil
    for i = HEADER + 1, #list, LEASE_WIDTH do
        if list[i + 4] <= now then
            release(name, list, i)
        else
            for field = i, i + LEASE_WIDTH - 1 do
                kept[#kept + 1] = list[field]
            end
            first = math.min(first or list[i + 4], list[i + 4])
        end
    end
    return first and kept, first
end

local function release_ended()
    for _, other in ipairs(ended) do
        if other ~= member then
            local name = string.match(other, '^(%a+):')
            local list = load_numbers(redis.call('HGET', key, other))
            if #list < HEADER then
                error('record')
            end
            local kept, first = without_ended(name, list)
            if kept then
                redis.call('HSET', key, other, save_numbers(kept))
                redis.call('ZADD', expiries, first, other)
            else
                redis.call('HDEL', key, other)
                redis.call('ZREM', expiries, other)
            end
        end
    end
end

-- Of this call.
local names, budgets, mine = nil, nil, nil -- as stored
local saved, answer = {seq, now}, {} -- what comes of them
local renew, length, idle_length, learning, is_acked = nil, nil, nil, nil, nil

-- Whole tokens out of the budget's bucket, for as long as a lease of it lasts. Returns the grant,
-- what the host may hold with it, and whether the bucket is dry. `old`: place in `mine`, or nil.
local function tokens_for(slot, old, wanted_rate, demand, claim, in_use)
    local b = (slot - 1) * BUDGET_WIDTH
    local rate, unit = budgets[b + 1], budgets[b + 3]
    local purse = purse_of(pool, slot)
    local most = math.max(budgets[b + 2], rate * length / 1000, unit)
    local free = purse[1] + math.max(0, rate - in_use) * (now - purse[2]) / 1000
    if old and not is_acked then
        free = free + mine[old + 2] -- never arrived
    end
    -- What the host has not spent it keeps; without a record it is believed while learning.
    local held = old and math.min(claim, mine[old + 3]) or learning and claim or 0
    held = math.min(held, math.max(0, most - purse[3]))
    free = math.min(free, most - purse[3] - held)
    local wanted = math.ceil(wanted_rate * length / 1000 / unit) * unit - held
    -- Who asks for nothing yet has one at hand as long as there are plenty.
    if demand == 0 then
        wanted = held == 0 and free > most / 2 and unit or 0
    end
    local grant = math.max(0, math.floor(math.min(wanted, free) / unit) * unit)
    purse[1], purse[2], purse[3] = free - grant, now, purse[3] + held + grant
    return grant, held + grant, free - grant < unit
end

-- A share of the rate within what the others may still be using, and what this host may be using
-- until it says that it got the answer. Above a budget that was lowered, all shrink alike.
local function rate_for(old, rate, wanted, others)
    local base = old and (is_acked and mine[old + 2] or mine[old + 3]) or 0
    local room = rate - others
    if room < base then
        room = base * rate / (others + base)
    end
    local grant = wanted < room and wanted or room
    if grant < 0 then
        grant = 0
    end
    return grant, base > grant and base or grant
end

-- Whether tokens are counted, and whether the lease turns from one kind to the other. It never
-- holds both: the old kind goes to nothing, is acknowledged as that, and only then the other begins.
local function kind_of(old, rate, unit, hosts_there)
    local was = old and mine[old] % 4 >= COUNTED
    local counted = rate * length / 1000 / hosts_there < (was and 2 or 1) * FEWEST_UNITS * unit
    if old and counted ~= was and not (is_acked and mine[old + 2] == 0) then
        return was, true
    end
    return counted, false
end

-- The row at `i` of the call; `old` is the place of its last lease in `mine`, already released.
local function lease(slot, i, old)
    local demand, claim, idle = finite(rows[i + 1]), finite(rows[i + 2]), rows[i + 3] == 1
    local b = (slot - 1) * BUDGET_WIDTH
    local rate, burst, unit = budgets[b + 1], budgets[b + 2], budgets[b + 3]
    local all, at = sums[pool], (slot - 1) * SUMS_WIDTH
    local in_use, below, above, there = all[at + 2], all[at + 3], all[at + 4], all[at + 5] + 1

    -- One floor stays free, so that a host that joins does not begin with nothing.
    local floor = FLOOR * rate / (there + 1)
    local shared = rate - floor
    local asked = demand > floor and demand or floor
    -- The level at which all that is asked for below it, and the level itself for everybody above,
    -- add up to the budget. It is never below an equal share, however old the sums are.
    local level = (shared - below) / (above + 1)
    if level < shared / there then
        level = shared / there
    end
    local capped = asked > level
    local wanted = capped and level or asked
    if not capped and above == 0 and not idle and shared > below + asked then
        wanted = wanted + (shared - below - asked) * SPARE_GIVEN / there
    end

    local counted, turns = kind_of(old, rate, unit, there)
    local grant, held, dry, awaited
    if not counted then
        wanted = turns and 0 or learning and claim or wanted
        grant, held = rate_for(old, rate, wanted, in_use)
        burst = burst * grant / rate
        burst = burst > unit and burst or unit
        dry = learning or capped and grant >= wanted
        -- A long lease would keep what is unacknowledged from the others for as long.
        awaited = grant < NOTABLE * held and (idle or above > 0 or in_use + held > shared)
        all[at + 2] = in_use + held
    elseif turns then
        grant, held, burst = 0, mine[old + 3], 0
        local purse = purse_of(pool, slot)
        purse[3] = purse[3] + held
    else
        grant, held, dry = tokens_for(slot, old, capped and level or demand, demand, claim, in_use)
        burst = held
    end
    if not (in_use > -1e-6 * rate and in_use <= HUGE and held <= HUGE) then
        error('sums')
    end
    all[at + 1] = all[at + 1] + asked
    if capped then
        all[at + 4] = above + 1
    else
        all[at + 3] = below + asked
    end
    all[at + 5] = there

    local n, a = #saved, #answer
    saved[n + 1], saved[n + 2] = slot * 4 + (capped and CAPPED or 0) + (counted and COUNTED or 0), asked
    saved[n + 3], saved[n + 4] = grant, held
    saved[n + 5] = now + (idle and idle_length or length) + GRACE
    answer[a + 1] = (dry and SATURATED or 0) + (counted and TOKENS or 0) +
        ((awaited or turns) and AWAITED or 0)
    answer[a + 2], answer[a + 3], answer[a + 4] = grant, burst, rate
end

local function lease_rows()
    local places = {} -- slot -> place in `mine`
    for i = HEADER + 1, #mine, LEASE_WIDTH do
        places[(mine[i] - mine[i] % 4) / 4] = i
    end
    sums_of(pool)
    for i = 1, #rows - 1, 4 do
        local slot = names[rows[i]]
        if slot and budgets[(slot - 1) * BUDGET_WIDTH + 1] > 0 then
            local old = places[slot]
            if old then
                places[slot] = nil
                release(pool, mine, old)
            end
            lease(slot, i, old)
        else
            local a = #answer
            answer[a + 1], answer[a + 2], answer[a + 3], answer[a + 4] = UNKNOWN, 0, 0, 0
        end
    end
    -- What this call is not about stays as it is until it ends.
    for _, i in pairs(places) do
        if mine[i + 4] <= now then
            release(pool, mine, i)
        else
            for field = i, i + LEASE_WIDTH - 1 do
                saved[#saved + 1] = mine[field]
            end
        end
    end
end

local function save(clock)
    local fields = {'clock', struct.pack('<dddBc0', clock[1], clock[2], clock[3], #run, run)}
    for name, list in pairs(sums) do
        fields[#fields + 1], fields[#fields + 2] = name, save_numbers(list)
    end
    for field, purse in pairs(purses) do
        fields[#fields + 1], fields[#fields + 2] = field, save_numbers(purse)
    end
    redis.call('HSET', key, unpack(fields))
    if #saved == HEADER then -- nothing is leased, so there is nothing to end
        redis.call('HDEL', key, member)
        redis.call('ZREM', expiries, member)
        return
    end
    local first = HUGE
    for i = HEADER + LEASE_WIDTH, #saved, LEASE_WIDTH do
        first = math.min(first, saved[i])
    end
    redis.call('HSET', key, member, save_numbers(saved))
    if redis.call('ZADD', expiries, first, member) == 0 and #mine == 0 then
        -- Somebody took the record away, and the sums still count it: learn with the next call.
        redis.call('HDEL', key, 'clock')
    end
end

-- Whether leases may be out that are not in the books: another server wrote them or none did, or
-- the clock moved. `clock` and `mine` are as they were stored.
local function lost_track(clock, known_run)
    if not clock[1] or known_run ~= run or now < clock[1] - GRACE then
        return true
    end
    local silence = now - clock[1]
    if silence > clock[3] + GRACE then
        return true
    end
    -- Everybody was silent and this host says that it was not so long.
    return silence > JUMP and mine[1] == acked and now - mine[2] - since > JUMP
end

-- Nothing where it is none: then no lease can be longer than callers know.
local function load_clock(text)
    if not text or #text ~= 3 * 8 + 1 + #run then
        return {}, nil
    end
    local last, learned, most, known_run = struct.unpack('<dddBc0', text)
    if not (last >= 0 and learned >= 0 and most >= 0 and most <= HUGE) then
        return {}, nil
    end
    return {last, learned, most}, known_run
end

-- Everything but the budgets; who holds a lease will claim it.
local function forget()
    local version = redis.call('HGET', key, 'version')
    redis.call('UNLINK', key, expiries)
    for field, value in pairs({names = stored[2], budgets = stored[3], next = stored[4],
        version = version}) do
        if value then
            redis.call('HSET', key, field, value)
        end
    end
    stored[1], stored[5], stored[6] = false, false, false
    ended, hosts, sums, purses = {}, 0, {}, {}
end

local function serve()
    names = stored[2] and cmsgpack.unpack(stored[2]) or {}
    budgets = load_numbers(stored[3])
    local waiting = stored[4] and cmsgpack.unpack(stored[4])
    local clock, known_run = load_clock(stored[1])
    mine = load_numbers(stored[6])
    if stored[6] and (#mine < HEADER or (#mine - HEADER) % LEASE_WIDTH ~= 0) then
        error('record')
    end

    if lost_track(clock, known_run) then
        forget()
        mine = {}
        longest = math.max(longest, clock[3] or 0, LEASE_PERIODS * IDLE_PERIOD)
        clock = {now, now + longest + GRACE, longest}
    elseif mine[1] and seq <= mine[1] then
        return struct.pack('<BI4I4I4I4I4', DUPLICATE, 0, 0, 0, 0, hosts)
    end
    if waiting and waiting[1][1] <= now then
        waiting = apply_due(names, budgets, waiting, now)
    end
    slots = #budgets / BUDGET_WIDTH
    learning = now < clock[2]
    renew = math.max(period, hosts * cost / 1000 / CPU_SHARE)
    length = LEASE_PERIODS * renew
    idle_length = LEASE_PERIODS * math.max(IDLE_PERIOD, renew)
    now = math.max(clock[1], now)
    clock[1] = now
    clock[3] = math.max(clock[3], longest, idle_length)
    is_acked = mine[1] == acked
    -- Only whoever has shown that it counts time alike is believed that others have ended.
    if is_acked then
        release_ended()
    end
    lease_rows()
    save(clock)
    return struct.pack('<BI4I4I4I4I4' .. string.rep('Bddd', #answer / 4), learning and LEARNING or OK,
        renew, length, idle_length, clock[3], hosts, unpack(answer))
end

local served, reply = pcall(serve)
if not served then
    -- What is stored can't be read, which is as good as lost. Budgets come again from a host.
    redis.call('UNLINK', key, expiries)
    stored, ended, hosts, sums, purses = {}, {}, 0, {}, {}
    saved, answer = {seq, now}, {}
    served, reply = pcall(serve)
end
return served and reply or redis.error_reply('ERR lease: ' .. tostring(reply))
