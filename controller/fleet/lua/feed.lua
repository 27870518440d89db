-- The change feed of a fleet: what ban.lua, unban.lua, switch.lua and accept.lua know of it. It is
-- put in front of each, as a script in Redis can't load another one.
--
-- KEYS[1] is sluice:{F:bans}. All other names begin with it, so they lie in its slot:
--   :<0..4095>  hashes: member -> record. A member is "source|prefix", of an allow "+source|prefix";
--               a record is expiry (ms since 1970, 0 = for good), rev, marks (f = forced, e = exempt),
--               since (s since 1970), actor, reason, with tabs between them
--   :digest     a string of 16-bit numbers, one a bucket: the sum of what its members come to
--   :expiry     a sorted set: place of a member -> its expiry
--   :order      a sorted set without scores: the places of all members, in the order of addresses;
--               a place is the address (32 hex digits), its length (2, of 128) and the member
--   :gone       a sorted set: members that were taken back -> when (ms)
--   :switches   a hash: "gate", a service or a rule -> mode, expiry, rev, actor, reason
--   :feed       a stream of all changes, each with its rev
--   :meta       a hash: epoch, by which a wiped server is told from an empty one; rev, of the last
--               change; cleaned, the last expiry and place that was cleared away; accepted, the rev of
--               the last `sync --accept-shrink`
--   :fence      the token of the risk leader that bans at present; it outlives the rest

local base = KEYS[1]
local digests, expiries, order, gone = base .. ':digest', base .. ':expiry', base .. ':order', base .. ':gone'
local switches, feed, meta = base .. ':switches', base .. ':feed', base .. ':meta'

local BUCKETS = 4096
local PLACE_DIGITS = 34
local MOST_CLEARED = 1000 -- members in one call: more would keep everybody else waiting
local TOMBSTONE = 3600 * 1000 -- ms
local FEED_LENGTH = 16384 -- minutes of a busy fleet; who was away for longer compares digests
local LONGEST_TTL = 30 * 365 * 24 * 3600 * 1000 -- ms; what a gate can keep

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function bucket_of(prefix)
    return tonumber(string.sub(redis.sha1hex(prefix), 1, 3), 16)
end

local function digest_of(member, record)
    return tonumber(string.sub(redis.sha1hex(member .. '=' .. record), 1, 4), 16)
end

local function prefix_of(member)
    return string.match(member, '|(.*)$')
end

local function fields_of(record)
    local expiry, rev, marks, since, actor, reason =
        string.match(record, '^(%d+)\t(%d+)\t([fe]*)\t(%d+)\t([^\t]*)\t(.*)$')
    return tonumber(expiry or 0), marks or '', reason or '', rev, since, actor
end

local function is_live(record)
    local expiry = fields_of(record)
    return expiry == 0 or expiry > now
end

-- Also after some of the keys were evicted: what is left of a state makes no sense.
local function begin_anew()
    redis.call('UNLINK', digests, expiries, order, gone, switches, feed, meta)
    for first = 0, BUCKETS - 1, 512 do
        local names = {}
        for bucket = first, first + 511 do
            names[#names + 1] = base .. ':' .. bucket
        end
        redis.call('UNLINK', unpack(names))
    end
    redis.call('SETRANGE', digests, 2 * BUCKETS - 1, '\0')
    -- Higher than any rev of the state before, which hosts may remember.
    redis.call('HSET', meta, 'epoch', string.format('%d.%06d', time[1], time[2]),
        'rev', string.format('%d%06d', time[1], time[2]))
end

if not redis.call('HGET', meta, 'epoch') or redis.call('STRLEN', digests) ~= 2 * BUCKETS then
    begin_anew()
end

local function next_rev()
    return string.format('%.0f', redis.call('HINCRBY', meta, 'rev', 1))
end

local function announce(rev, ...)
    redis.call('XADD', feed, 'MAXLEN', '~', FEED_LENGTH, '*', 'rev', rev, ...)
end

local function add_to_digest(bucket, difference)
    local at = 2 * bucket
    local sum = struct.unpack('>H', redis.call('GETRANGE', digests, at, at + 1))
    redis.call('SETRANGE', digests, at, struct.pack('>H', (sum + difference) % 65536))
end

-- Takes a member out of everything but `expiries`; returns its record, or false.
local function remove(place)
    local member = string.sub(place, PLACE_DIGITS + 1)
    local bucket = bucket_of(prefix_of(member))
    local name = base .. ':' .. bucket
    local record = redis.call('HGET', name, member)
    redis.call('ZREM', order, place)
    if record then
        redis.call('HDEL', name, member)
        add_to_digest(bucket, -digest_of(member, record))
    end
    return record
end

local function clear_expired()
    local over = redis.call('ZRANGEBYSCORE', expiries, 1, now, 'LIMIT', 0, MOST_CLEARED)
    if #over > 0 then
        local last = over[#over]
        redis.call('HSET', meta, 'cleaned', redis.call('ZSCORE', expiries, last) .. '\t' .. last)
        for _, place in ipairs(over) do
            remove(place)
        end
        redis.call('ZREMRANGEBYRANK', expiries, 0, #over - 1)
    end
    local old = redis.call('ZRANGEBYSCORE', gone, '-inf', now - TOMBSTONE, 'LIMIT', 0, MOST_CLEARED)
    if #old > 0 then
        redis.call('ZREMRANGEBYRANK', gone, 0, #old - 1)
    end
end
clear_expired()

-- Milliseconds to live as an expiry; nothing where it is no such number.
local function expiry_of(ttl)
    local number = tonumber(ttl)
    if not number or not (number >= 0 and number <= LONGEST_TTL) then
        return nil
    end
    return number == 0 and 0 or now + math.floor(number)
end
