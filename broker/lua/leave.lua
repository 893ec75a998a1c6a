-- Takes a user off the list of those online, or hands the entry on to another device, unless somebody wrote it anew since.
-- KEYS  1 online:users:<shard>
-- ARGV  1 user id   2 the score that the session had written   3 the score of a session that is left, 0 for none
-- Result  1 when it changed the entry, else 0
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
if tonumber(ARGV[3]) > 0 then
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
else
  redis.call('ZREM', KEYS[1], ARGV[1])
end
return 1
