-- Appends ARGV[1] to two keys of one slot, and counts.
redis.call('APPEND', KEYS[1], ARGV[1])
redis.call('APPEND', KEYS[2], ARGV[1])
return redis.call('STRLEN', KEYS[1])
