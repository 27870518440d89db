-- Who walks the fleet's risk set: one host at a time, for as long as it goes on saying so.
--
-- KEYS[1]: sluice:{F:risk}, in front of :leader ("host token") and :token.
-- ARGV: host, time in ms for which it leads, 1 = it wants to, 0 = it does not any more.
-- Answers {1 where this host leads, who leads or "", the token, now in ms}. A token is higher than
-- all before it, also where those are lost: it is no lower than the clock.

local leader_key, token_key = KEYS[1] .. ':leader', KEYS[1] .. ':token'
local host, wants = ARGV[1], ARGV[3] == '1'
local time = redis.call('TIME')
local now = string.format('%d%03d', time[1], math.floor(time[2] / 1000))

local leader, token = string.match(redis.call('GET', leader_key) or '', '^(%S+) (%d+)$')
if leader == host and not wants then
    redis.call('DEL', leader_key)
    leader = nil
elseif leader == host then
    redis.call('PEXPIRE', leader_key, ARGV[2])
elseif not leader and wants then
    local last = tonumber(redis.call('GET', token_key)) or 0
    token = string.format('%.0f', math.max(last + 1, tonumber(now)))
    redis.call('SET', token_key, token)
    redis.call('SET', leader_key, host .. ' ' .. token, 'PX', ARGV[2])
    leader = host
end
return {leader == host and 1 or 0, leader or '', token or '0', now}
