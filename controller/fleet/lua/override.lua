-- Changes a service's numbers for a time on all hosts, or ends that. policy.lua says what is stored.
--
-- ARGV: service, time in ms (0 = ends now), actor, reason, then each value as KEY=VALUE.
-- Answers {"done", until, stamp}; {"missing"}: there is none to end, or the fleet has no policy;
-- {"full"}.

local LONGEST = 7 * 24 * 3600 * 1000 -- ms; for longer it is a policy
local MOST = 64 -- every host reads them all
local MOST_VALUES = 12 -- a service has so many limits

local service, ttl, actor, reason = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
if not (ttl and ttl >= 0 and ttl <= LONGEST) or not string.find(service, '^[a-z0-9-]+$') or
    not (is_text(actor) and is_text(reason)) or #ARGV > 4 + MOST_VALUES or (ttl > 0 and #ARGV < 5) then
    return redis.error_reply('ERR override: service, time, actor, reason and values are wanted')
end
for i = 5, #ARGV do
    if not is_text(ARGV[i]) then
        return redis.error_reply('ERR override: no value: ' .. i)
    end
end
local now, known = now_ms(), 0
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'o:' then
        if (tonumber(string.match(all[i + 1], '^%d+') or 0) or 0) <= now then
            redis.call('HDEL', key, all[i])
        elseif all[i] ~= 'o:' .. service then
            known = known + 1
        end
    end
end
if ttl == 0 then
    if redis.call('HDEL', key, 'o:' .. service) == 0 then
        return {'missing'}
    end
elseif number_of('current') == 0 then
    return {'missing'}
elseif known >= MOST then
    return {'full'}
else
    redis.call('HSET', key, 'o:' .. service, table.concat({whole(now + math.floor(ttl)), actor, reason,
        service, unpack(ARGV, 5)}, '\t'))
end
local stamp = next_stamp(0)
owe(stamp)
redis.call('HINCRBY', key, 'rev', 1)
return {'done', whole(now + math.floor(ttl)), whole(stamp)}
