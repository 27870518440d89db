-- Makes the shared budgets of the fleet's policy be written again: a lease shard has lost them, or has
-- some of a policy that this server knows nothing of. policy.lua says what is stored.
--
-- ARGV: 0, or the stamp of what such a shard has.
-- Answers {"owed", stamp with which they are to be written}; {"known"}: the shard has them from a
-- change that came meanwhile; {"missing"}: the fleet has no policy.

local found = tonumber(ARGV[1])
if not found or not (found >= 0 and found <= 1e15) then
    return redis.error_reply('ERR owe: a stamp is wanted')
end
if number_of('current') == 0 then
    return {'missing'}
end
local stamp = number_of('unwritten')
if stamp == 0 and found > 0 and found <= number_of('stamp') then
    return {'known'}
end
if stamp <= found then
    stamp = next_stamp(found)
    owe(stamp)
end
return {'owed', whole(stamp)}
