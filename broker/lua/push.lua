-- Queues a message for a user and reads the user's sessions. Ids follow the clock, so that even a queue that was lost or
-- has lived out its time gives none again that a client has seen.
-- KEYS  1 notify:queue:{user}   2 session:{user}
-- ARGV  1 ms that the message lives   2 messages at most   3 seconds that the queue lives   4 token of this push
--       5 '1' when an earlier try of the same push may have arrived   6 the message after its head: "json":...} or "msgpack":"..."}
-- Result  { id, newest id before it or 0, now in ms, { session id, text, ... } }, or { 0 } when the queue is full
-- Fields of the queue beside the messages: `newest`, the greatest id given; `nextExpiry`, ms, before which no message expires.
local queue = KEYS[1]
local now = clock()

-- Looks through all messages: the id of the one with this token, and the greatest id before it.
local function findEarlier(token)
  local fields = redis.call('HGETALL', queue)
  local mark = '"push":"' .. token .. '"'
  local found
  for i = 1, #fields, 2 do
    if tonumber(fields[i]) and string.find(string.sub(fields[i + 1], 1, 100), mark, 1, true) then
      found = tonumber(fields[i])
    end
  end
  if not found then return nil end
  local before = 0
  for i = 1, #fields, 2 do
    local id = tonumber(fields[i])
    if id and id < found then before = math.max(before, id) end
  end
  return found, before
end

-- Drops what is over, and notes when to look again: a queue that is full is not read at each push.
local function prune()
  local fields = redis.call('HGETALL', queue)
  local nextExpiry = math.huge
  for i = 1, #fields, 2 do
    local over = tonumber(fields[i]) and untilOf(fields[i + 1])
    if over and over <= now then
      redis.call('HDEL', queue, fields[i])
    elseif over then
      nextExpiry = math.min(nextExpiry, over)
    end
  end
  if nextExpiry < math.huge then redis.call('HSET', queue, 'nextExpiry', string.format('%.0f', nextExpiry)) end
end

local function isFull()
  local others = redis.call('HEXISTS', queue, 'newest') + redis.call('HEXISTS', queue, 'nextExpiry')
  return redis.call('HLEN', queue) - others >= tonumber(ARGV[2])
end

local function answer(id, before)
  return { id, before, now, redis.call('HGETALL', KEYS[2]) }
end

if ARGV[5] == '1' then
  local id, before = findEarlier(ARGV[4])
  if id then return answer(id, before) end
end
if isFull() then
  if (tonumber(redis.call('HGET', queue, 'nextExpiry')) or 0) <= now then prune() end
  if isFull() then return { 0 } end
end

local newest = newestOf(queue)
local time = redis.call('TIME')
-- In microseconds, so that no rate of pushes runs ahead of the clock.
local id = math.max(newest + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
local over = now + tonumber(ARGV[1])
local nextExpiry = tonumber(redis.call('HGET', queue, 'nextExpiry')) or over
local name = string.format('%.0f', id)
local head = '{"until":' .. string.format('%.0f', over) .. ',"push":"' .. ARGV[4] .. '",'
redis.call('HSET', queue, name, head .. ARGV[6], 'newest', name,
  'nextExpiry', string.format('%.0f', math.min(nextExpiry, over)))
redis.call('EXPIRE', queue, tonumber(ARGV[3]))
return answer(id, newest)
