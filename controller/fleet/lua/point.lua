-- Makes a version current that was pushed before, and ends the canary: promote and rollback.
-- policy.lua says what is stored.
--
-- ARGV: version, 0 = the one that is current; the rev by which that was decided, actor, from.
-- Answers {"done", since, the version that was current}; {"moved", ...}: something was changed after
-- that rev; {"missing"}: there is no such version.

local version, rev, actor, from = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
if not version or not rev or not (is_text(actor) and is_text(from)) then
    return redis.error_reply('ERR point: version, rev, actor and from are wanted')
end
if number_of('rev') ~= rev then
    return {'moved'}
end
local current = number_of('current')
if version == 0 then
    version = current
end
if redis.call('STRLEN', key .. ':v' .. whole(version)) == 0 or not about(version) then
    return {'missing'}
end
local since
if version == current then
    since = number_of('since') -- hosts that have it go on with it
    redis.call('HDEL', key, 'canary', 'canary_hosts', 'canary_since')
else
    since = next_stamp(0)
    make_current(version, since, actor, from)
end
redis.call('HINCRBY', key, 'rev', 1)
return {'done', whole(since), whole(current)}
