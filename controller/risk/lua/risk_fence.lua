-- From now on ban.lua takes no bans of a risk leader with a lower token.
--
-- KEYS[1]: sluice:{F:bans}, in front of :fence. ARGV: the token.
-- Answers 1, or 0 where a later leader was here.

local fence = KEYS[1] .. ':fence'
local token = tonumber(ARGV[1])
if not token then
    return redis.error_reply('ERR risk: a token is wanted')
end
if token < (tonumber(redis.call('GET', fence)) or 0) then
    return 0
end
redis.call('SET', fence, ARGV[1])
return 1
