-- Puts a leader's new scores in the place of the old ones.
--
-- KEYS[1]: sluice:{F:risk}. ARGV: host, token.
-- Answers 1, or 0 where that leader does not lead any more: its scores are thrown away.

local score, new = KEYS[1] .. ':score', KEYS[1] .. ':score:' .. ARGV[2]
if redis.call('GET', KEYS[1] .. ':leader') ~= ARGV[1] .. ' ' .. ARGV[2] then
    redis.call('UNLINK', new)
    return 0
end
redis.call('UNLINK', score)
if redis.call('EXISTS', new) == 1 then
    redis.call('RENAME', new, score)
    redis.call('PERSIST', score)
end
return 1
