-- Notes that the shared budgets of a change are in the lease shards. policy.lua says what is stored.
--
-- ARGV: its stamp. Answers 1, or 0 where another change came meanwhile, whose budgets are to be
-- written too.

if redis.call('HGET', key, 'unwritten') ~= ARGV[1] then
    return 0
end
redis.call('HDEL', key, 'unwritten')
return 1
