-- Adds a ban or an allow. feed.lua says what is stored.
--
-- ARGV: "ban" or "allow", prefix, its place without the member, source, time to live in ms (0 = for
-- good), marks, actor, reason; of a leader that bans by scores its token, see risk_fence.lua.
-- Answers {"added" | "changed" | "kept" | "full" | "fenced", expiry, rev}: a ban that lasts longer already is
-- kept, also where it is wanted for a shorter time.

local MOST_MEMBERS = 1000000 -- of a fleet; hosts keep them all

local kind, prefix, place, source = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local expiry = expiry_of(ARGV[5])
local marks, actor, reason = ARGV[6], ARGV[7], ARGV[8]
if (kind ~= 'ban' and kind ~= 'allow') or not reason or not expiry or #place ~= PLACE_DIGITS or
    string.find(place, '[^0-9a-f]') or not string.find(source, '^[a-z0-9-]+$') or
    string.find(marks, '[^fe]') or string.find(prefix .. actor .. reason, '[\t\n|]') then
    return redis.error_reply('ERR ban: kind, prefix, place, source, time, marks, actor and reason are wanted')
end
local token = tonumber(ARGV[9])
if ARGV[9] and not (token and token >= (tonumber(redis.call('GET', base .. ':fence')) or 0)) then
    return {'fenced', 0, 0} -- another one leads by now
end
local member = (kind == 'allow' and '+' or '') .. source .. '|' .. prefix
place = place .. member
local bucket = bucket_of(prefix)
local name = base .. ':' .. bucket

local old = redis.call('HGET', name, member)
local stands = old and is_live(old)
local since = time[1]
if stands then
    local old_expiry, old_marks, old_reason, old_rev, old_since = fields_of(old)
    since = old_since or since
    if kind == 'ban' then
        local is_longer = expiry ~= 0 and (old_expiry == 0 or old_expiry > expiry)
        if string.find(old_marks, 'f') and not string.find(marks, 'f') then
            marks = marks .. 'f'
        end
        if is_longer and marks == old_marks then
            return {'kept', old_expiry, old_rev}
        end
        expiry = is_longer and old_expiry or expiry
        reason = reason == '' and old_reason or reason -- who only extends it need not repeat why
    end
elseif not old and redis.call('ZCARD', order) >= MOST_MEMBERS then
    return {'full', 0, 0}
end

local rev = next_rev()
local record = table.concat({string.format('%.0f', expiry), rev, marks, since, actor, reason}, '\t')
redis.call('HSET', name, member, record)
add_to_digest(bucket, digest_of(member, record) - (old and digest_of(member, old) or 0))
redis.call('ZADD', order, 0, place)
if expiry == 0 then
    redis.call('ZREM', expiries, place)
else
    redis.call('ZADD', expiries, expiry, place)
end
redis.call('ZREM', gone, member)
announce(rev, 'op', 'put', 'member', member, 'record', record)
return {stands and 'changed' or 'added', expiry, rev}
