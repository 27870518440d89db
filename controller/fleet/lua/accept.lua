-- Says that what this server has is right, though hosts have more: they drop the rest. feed.lua says
-- what is stored.
--
-- ARGV: numbers of buckets whose digest no longer fits them, as some of them were evicted.
-- Answers the rev.

for _, text in ipairs(ARGV) do
    local bucket = tonumber(text)
    if not bucket or not (bucket >= 0 and bucket < BUCKETS) or bucket % 1 ~= 0 then
        return redis.error_reply('ERR accept: no bucket: ' .. text)
    end
    local sum = 0
    local all = redis.call('HGETALL', base .. ':' .. bucket)
    for i = 1, #all, 2 do
        sum = sum + digest_of(all[i], all[i + 1])
    end
    redis.call('SETRANGE', digests, 2 * bucket, struct.pack('>H', sum % 65536))
end
local rev = next_rev()
redis.call('HSET', meta, 'accepted', rev)
announce(rev, 'op', 'accept')
return rev
