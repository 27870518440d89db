-- The hosts of a fleet by their heartbeats, those heard of last first: writes nothing.
--
-- KEYS: as those of heartbeat.lua. ARGV: how many to pass over, most hosts.
-- Answers {hosts in all, {host, ms since it was heard of, its words, ...}}.

local first, most = tonumber(ARGV[1]), tonumber(ARGV[2])
if not first or first < 0 or not most or most < 1 then
    return redis.error_reply('ERR hosts: from where on, and how many?')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen = redis.call('ZREVRANGE', KEYS[1], first, first + most - 1, 'WITHSCORES')
local names = {}
for i = 1, #seen, 2 do
    names[#names + 1] = seen[i]
end
local words = #names > 0 and redis.call('HMGET', KEYS[2], unpack(names)) or {}
local answered = {}
for i, name in ipairs(names) do
    answered[#answered + 1] = name
    answered[#answered + 1] = string.format('%.0f', math.max(0, now - seen[i * 2]))
    answered[#answered + 1] = words[i] or ''
end
return {redis.call('ZCARD', KEYS[1]), answered}
