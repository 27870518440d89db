-- The policy of a fleet: what push.lua, point.lua, override.lua, owe.lua and written.lua know of it. It
-- is put in front of each, as a script in Redis can't load another one.
--
-- KEYS[1] is sluice:{F:policy}. All other names begin with it, so they lie in its slot.
--   (itself)  a hash: rev, which counts all changes; last, the highest version that was ever pushed;
--             current, the version that hosts are to have, and since (ms since 1970), by and from:
--             when, by whom and whence it was made that; canary, the version that canary_hosts ("10%",
--             or names and ids with commas) are to have in its place, and canary_since; stamp, the
--             last time (ms since 1970) that was given to a change, each one later than the one before;
--             unwritten, the stamp with which the shared budgets of now are to be written to the lease
--             shards, as long as they are not; again, when (ms) they are to be written once more, as
--             changes that schedules make wait there for a day ahead only; v<N>, about a version: pushed (ms), by, from, SHA-1 of its text, bytes, the version that was current
--             before it, note, with tabs between; o:<service>, other numbers for a time: until (ms),
--             by, reason, service and each KEY=VALUE, likewise
--   :v<N>     strings: the text of each version, which never changes

local key = KEYS[1]

local MOST_BYTES = 1048572 -- what a gate keeps of a policy
local MOST_WORDS = 256 -- bytes of who, whence or why
local KEPT = 64 -- versions; older ones go, unless hosts are to have them

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function number_of(field)
    return tonumber(redis.call('HGET', key, field) or 0) or 0
end

local function whole(number)
    return string.format('%.0f', number)
end

local function is_text(text)
    return text and #text <= MOST_WORDS and not string.find(text, '[%z\1-\31\127]')
end

local function about(version)
    return redis.call('HGET', key, 'v' .. whole(version))
end

-- What a version was pushed over is kept where it was first made current, so that one rollback after
-- the other leads back in time.
local function set_before(version, before)
    local head, old, note = string.match(about(version) or '', '^(.*)\t(%d+)\t([^\t]*)$')
    if head and old == '0' then
        redis.call('HSET', key, 'v' .. whole(version), head .. '\t' .. whole(before) .. '\t' .. note)
    end
end

-- Later than that of the change before, whatever the clock did meanwhile: hosts and shards go by it.
-- `after`: it is above that as well.
local function next_stamp(after)
    local stamp = math.max(now_ms(), number_of('stamp') + 1, after + 1)
    redis.call('HSET', key, 'stamp', whole(stamp))
    return stamp
end

-- The shared budgets of all that was changed so far are to be written, whoever was to write others.
local function owe(stamp)
    redis.call('HSET', key, 'unwritten', whole(stamp))
end

local function make_current(version, since, actor, from)
    local before = number_of('current')
    if before < version then -- and not where it is gone back to
        set_before(version, before)
    end
    redis.call('HSET', key, 'current', whole(version), 'since', whole(since), 'by', actor, 'from', from)
    owe(since)
    redis.call('HDEL', key, 'canary', 'canary_hosts', 'canary_since')
end
