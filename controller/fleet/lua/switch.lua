-- Sets a switch of the fleet, or gives it back. feed.lua says what is stored.
--
-- ARGV: "gate", a service or a rule; "off", "observe", "enforce" or "clear"; time in ms after which it
-- is given back (0 = stays), actor, reason.
-- Answers {"done" | "missing" | "full", what it was before or "", rev}.

local MOST_SWITCHES = 4096 -- every host reads them all

local target, mode, expiry, actor, reason = ARGV[1], ARGV[2], expiry_of(ARGV[3]), ARGV[4], ARGV[5]
local modes = {off = true, observe = true, enforce = true, clear = true}
if not reason or not modes[mode] or not expiry or not string.find(target, '^[a-z0-9._-]+$') or
    string.find(actor .. reason, '[\t\n]') then
    return redis.error_reply('ERR switch: target, mode, time, actor and reason are wanted')
end

local before = ''
local old = redis.call('HGET', switches, target)
if old then
    local was, ends = string.match(old, '^(%a+)\t(%d+)\t')
    if was and (ends == '0' or tonumber(ends) > now) then
        before = was
    end
end
if mode == 'clear' then
    redis.call('HDEL', switches, target)
    if before == '' then
        return {'missing', '', 0}
    end
    local rev = next_rev()
    announce(rev, 'op', 'clear', 'target', target)
    return {'done', before, rev}
end
if not old and redis.call('HLEN', switches) >= MOST_SWITCHES then
    return {'full', '', 0}
end
local rev = next_rev()
local value = table.concat({mode, string.format('%.0f', expiry), rev, actor, reason}, '\t')
redis.call('HSET', switches, target, value)
announce(rev, 'op', 'switch', 'target', target, 'value', value)
return {'done', before, rev}
