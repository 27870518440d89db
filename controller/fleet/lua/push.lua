-- Makes the next version of a fleet's policy, for all hosts or for some. policy.lua says what is
-- stored.
--
-- ARGV: text; the last version that the pusher knows, or "": push, whatever others did; a version that
-- the new one is to be above, and a stamp, likewise, for a server that lost its state; canaries, or
-- "" = all hosts; actor, from, note.
-- Answers {"done", version, since, the version that was current}; {"moved", last, what v<last> says}:
-- somebody else pushed after `base`.

local text, base, above, after, canaries, actor, from, note = unpack(ARGV)
if not note or #text > MOST_BYTES or not (base == '' or tonumber(base)) or not tonumber(above) or
    not tonumber(after) or not (is_text(canaries) and is_text(actor) and is_text(from) and is_text(note)) then
    return redis.error_reply('ERR push: text, base, above, after, canaries, actor, from and note are wanted')
end
local last = number_of('last')
if base ~= '' and tonumber(base) ~= last then
    return {'moved', whole(last), about(last) or ''}
end
local version = math.max(last, tonumber(above)) + 1
local current = number_of('current')
if canaries ~= '' and current == 0 then
    return redis.error_reply('ERR push: a canary needs a current version to be compared with')
end
redis.call('SET', key .. ':v' .. whole(version), text)
redis.call('HSET', key, 'last', whole(version), 'v' .. whole(version), table.concat({whole(now_ms()),
    actor, from, redis.sha1hex(text), whole(#text), '0', note}, '\t'))
local since = next_stamp(tonumber(after))
if canaries == '' then
    make_current(version, since, actor, from)
else
    redis.call('HSET', key, 'canary', whole(version), 'canary_hosts', canaries, 'canary_since',
        whole(since))
end
redis.call('HINCRBY', key, 'rev', 1)

-- Also those that were current when their turn came, and those that a jump of numbers passed over.
local stays = number_of('current')
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
    local old = tonumber(string.match(all[i], '^v(%d+)$'))
    if old and old <= version - KEPT and old ~= stays then
        redis.call('UNLINK', key .. ':v' .. whole(old))
        redis.call('HDEL', key, all[i])
    end
end
return {'done', whole(version), whole(since), whole(current)}
