-- Removes a session.
-- KEYS  1 session:{user}
-- ARGV  1 seconds that sessions live   2 session id
-- Result  { until when it would have lived in ms, or 0 when unknown; the same of the longest-lived one left, or 0 }
local ttlMs = tonumber(ARGV[1]) * 1000
local text = redis.call('HGET', KEYS[1], ARGV[2])
if not text then return { 0, 0 } end
redis.call('HDEL', KEYS[1], ARGV[2])
local now = clock()
local left = 0
for _, other in ipairs(redis.call('HVALS', KEYS[1])) do
  local over = untilOf(other, ttlMs)
  if over and over > now and over < math.huge then left = math.max(left, over) end
end
local own = untilOf(text, ttlMs)
return { own and own < math.huge and own or 0, left }
