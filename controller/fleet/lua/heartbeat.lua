-- Notes that a host lives, and what it says of itself.
--
-- KEYS: sorted set: host -> when it was last heard of (ms); hash: host -> its words.
-- ARGV: host, its words.
-- Answers 'ok', or 'full': the host goes unlisted, and leases all the same.

local KEPT = 3600 * 1000 -- ms: one that is silent for longer is forgotten
local MOST_FORGOTTEN = 16 -- in one call
local MOST_HOSTS = 10000 -- twice the largest fleet that is measured
local MOST_BYTES = 1024

local seen, words = KEYS[1], KEYS[2]
local host, said = ARGV[1], ARGV[2]
if not said or #host ~= 32 or #said > MOST_BYTES then
    return redis.error_reply('ERR heartbeat: a host of 32 digits and a few words are wanted')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local silent = redis.call('ZRANGEBYSCORE', seen, '-inf', now - KEPT, 'LIMIT', 0, MOST_FORGOTTEN)
if #silent > 0 then
    redis.call('ZREM', seen, unpack(silent))
    redis.call('HDEL', words, unpack(silent))
end
if redis.call('ZCARD', seen) >= MOST_HOSTS and not redis.call('ZSCORE', seen, host) then
    return redis.status_reply('full')
end
redis.call('ZADD', seen, now, host)
redis.call('HSET', words, host, said)
return redis.status_reply('ok')
