-- Makes a gateway's policy what one of its dated versions was, for good.
--
-- KEYS: the policy. ARGV: the fields and values of the version, in turns.
-- Answers 'ok'.

local MOST_WORDS = 128 -- such a hash has four fields, and a few of its owner's

local key = KEYS[1]
if #ARGV < 2 or #ARGV % 2 == 1 or #ARGV > MOST_WORDS then
    return redis.error_reply('ERR rollback: a few fields with their values are wanted')
end
redis.call('UNLINK', key)
redis.call('HSET', key, unpack(ARGV))
return redis.status_reply('ok')
