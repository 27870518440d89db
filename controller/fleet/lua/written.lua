-- Notes that the shared budgets of a change are in the lease shards. policy.lua says what is stored.
--
-- ARGV: its stamp; when they are to be written again, 0 = never. Answers 1, or 0 where another change
-- came meanwhile, whose budgets are to be written too.

local again = tonumber(ARGV[2])
if not again or not (again >= 0 and again <= 1e15) then
    return redis.error_reply('ERR written: a stamp and a time are wanted')
end
if redis.call('HGET', key, 'unwritten') ~= ARGV[1] then
    return 0
end
redis.call('HDEL', key, 'unwritten', 'again')
if again > 0 then
    redis.call('HSET', key, 'again', whole(again))
end
return 1
