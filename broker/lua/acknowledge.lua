-- Removes messages that were handled. What does not parse stays: no client can have seen it.
-- KEYS  1 notify:queue:{user}
-- ARGV  ids
-- Result  how many were removed whose time was not over
local now = clock()
local removed = 0
for _, id in ipairs(ARGV) do
  local text = redis.call('HGET', KEYS[1], id)
  local over = text and untilOf(text)
  if over then
    redis.call('HDEL', KEYS[1], id)
    if over > now then removed = removed + 1 end
  end
end
return removed
