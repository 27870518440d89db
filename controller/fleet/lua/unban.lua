-- Takes back the bans (or allows) of a prefix and of all inside it. feed.lua says what is stored.
--
-- ARGV: "ban" or "allow", prefix, its place without a member, the last address inside it (32 hex
-- digits), source ("*" = all), time in ms for which no ban is to hit it (0 = none), actor,
-- 1 = the grace is wanted even where there is nothing to take back.
-- Answers {"done", removed, prefix that still holds or "", rev}; {"more", removed}: call again, it
-- was too much for one call; {"missing", 0, prefix that still holds or "", rev}; {"cover", 0, prefix}:
-- refused, since a wider one would go on holding.

local kind, prefix, place, last = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local source, grace, actor, insists = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'
if (kind ~= 'ban' and kind ~= 'allow') or not ARGV[8] or not grace or #place ~= PLACE_DIGITS or
    string.find(place .. last, '[^0-9a-f]') or string.find(prefix .. actor, '[\t\n|]') then
    return redis.error_reply('ERR unban: kind, prefix, place, last address, source, grace and actor are wanted')
end
local address, length = string.sub(place, 1, 32), tonumber(string.sub(place, 33), 16)

local function is_meant(member)
    local is_allow = string.sub(member, 1, 1) == '+'
    if is_allow ~= (kind == 'allow') then
        return false
    end
    local from = string.sub(member, is_allow and 2 or 1, string.find(member, '|', 1, true) - 1)
    return source == '*' or from == source
end

local function record_of(member)
    return redis.call('HGET', base .. ':' .. bucket_of(prefix_of(member)), member)
end

-- The prefix of a live member of the kind, whoever says it, at this place.
local function holds_at(at)
    for _, other in ipairs(redis.call('ZRANGEBYLEX', order, '[' .. at, '[' .. at .. '\255')) do
        local member = string.sub(other, PLACE_DIGITS + 1)
        local record = (string.sub(member, 1, 1) == '+') == (kind == 'allow') and record_of(member)
        if record and is_live(record) then
            return prefix_of(member)
        end
    end
end

-- The widest that contains the prefix.
local function cover()
    local is_ipv4 = string.sub(address, 1, 24) == '00000000000000000000ffff'
    for shorter = is_ipv4 and 96 or 0, length - 1 do
        local whole, bits = math.floor(shorter / 4), shorter % 4
        local masked = string.sub(address, 1, whole)
        if bits > 0 then
            local digit = tonumber(string.sub(address, whole + 1, whole + 1), 16)
            masked = masked .. string.format('%x', digit - digit % 2 ^ (4 - bits))
        end
        local found = holds_at(masked .. string.rep('0', 32 - #masked) .. string.format('%02x', shorter))
        if found then
            return found
        end
    end
end

local covered = cover()
if covered and source == '*' then
    return {'cover', 0, covered}
end

local removed, more = 0, false
local from = '[' .. address
while not more do
    local places = redis.call('ZRANGEBYLEX', order, from, '[' .. last .. '\255', 'LIMIT', 0, MOST_CLEARED)
    for _, other in ipairs(places) do
        local member = string.sub(other, PLACE_DIGITS + 1)
        if tonumber(string.sub(other, 33, 34), 16) >= length and is_meant(member) then
            local record = remove(other)
            redis.call('ZREM', expiries, other)
            redis.call('ZADD', gone, now, member)
            removed = removed + (record and is_live(record) and 1 or 0)
        end
        more = more or removed >= MOST_CLEARED
    end
    if #places < MOST_CLEARED then
        break
    end
    from = '(' .. places[#places]
end
if more then
    return {'more', removed}
end
local still = covered or holds_at(place) or ''
if removed == 0 and not insists then
    grace = 0
end
-- Also where nothing is here: after this server lost something, hosts may have it still.
local rev = next_rev()
announce(rev, 'op', 'take', 'kind', kind, 'prefix', prefix, 'source', source, 'grace',
    string.format('%.0f', grace > 0 and now + grace or 0), 'actor', actor)
return {removed == 0 and 'missing' or 'done', removed, still, rev}
