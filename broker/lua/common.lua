-- Stands in front of every script; runs nothing by itself.
--
-- Values are JSON text. Messages, and sessions if need be, start with {"until":<ms since the Unix epoch>, so that their expiry is found
-- without parsing all of it; other text is parsed. A value that does not parse is left alone, always.

local sessionFields = { ['until'] = true, login = true, active = true, device = true }

local plainMembers = { '^"until":%d+,?', '^"login":%d+,?', '^"active":%d+,?', '^"device":"[^"\\]*"' }

-- ms since the Unix epoch.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- When a value's time is over: ms, or math.huge when it does not say. nil when it does not parse. A session that does not
-- say lives for ttlMs after it was active.
local function untilOf(value, ttlMs)
  local written = string.match(value, '^{"until":(%d+)')
  if written then return tonumber(written) end
  local ok, record = pcall(cjson.decode, value)
  if not ok or type(record) ~= 'table' then return nil end
  if type(record['until']) == 'number' then return record['until'] end
  if ttlMs and type(record.login) == 'number' then
    local active = type(record.active) == 'number' and record.active or 0
    -- In ms since the Unix epoch, or in seconds after the login.
    if active >= 1e11 then return active + ttlMs end
    local login = record.login >= 1e11 and record.login or record.login * 1000
    return login + active * 1000 + ttlMs
  end
  return math.huge
end

local function isOver(value, now, ttlMs)
  local over = untilOf(value, ttlMs)
  return over ~= nil and over <= now
end

-- Whether a session's text has nothing but what this version writes, which spares parsing it. `find` answers the end of each member that is there.
local function isPlain(text)
  if string.sub(text, 1, 1) ~= '{' then return false end
  local at = 1
  for _, member in ipairs(plainMembers) do
    local _, last = string.find(text, member, at + 1)
    at = last or at
  end
  return at == #text - 1 and string.sub(text, -1) == '}'
end

-- The new text of a session, with those members of the old one that this version does not know.
local function keepUnknown(old, new)
  if isPlain(old) then return new end
  local ok, record = pcall(cjson.decode, old)
  if not ok or type(record) ~= 'table' then return new end
  local kept = {}
  for name, value in pairs(record) do
    if type(name) == 'string' and not sessionFields[name] then
      kept[#kept + 1] = cjson.encode(name) .. ':' .. cjson.encode(value)
    end
  end
  if #kept == 0 then return new end
  table.sort(kept)
  return string.sub(new, 1, -2) .. ',' .. table.concat(kept, ',') .. '}'
end

-- Writes the sessions that ARGV holds from `first` to `last` (an id and its text each, `step` apart), drops those whose time is over, and lets the
-- key live for ttlSec.
local function writeSessions(key, now, ttlSec, first, last, step)
  local fields = redis.call('HGETALL', key)
  local known = {}
  for i = 1, #fields, 2 do known[fields[i]] = fields[i + 1] end
  for i = first, last, step do
    local old = known[ARGV[i]]
    redis.call('HSET', key, ARGV[i], old and keepUnknown(old, ARGV[i + 1]) or ARGV[i + 1])
    known[ARGV[i]] = nil
  end
  for id, text in pairs(known) do
    if isOver(text, now, ttlSec * 1000) then redis.call('HDEL', key, id) end
  end
  redis.call('EXPIRE', key, ttlSec)
end

-- The greatest id ever given by a queue; 0 when there was none.
local function newestOf(key)
  return tonumber(redis.call('HGET', key, 'newest')) or 0
end

-- Messages with an id greater than `after` (id, text, id, text ... in no order); drops those whose time is over.
local function readQueue(key, now, after)
  local fields = redis.call('HGETALL', key)
  local messages = {}
  for i = 1, #fields, 2 do
    local id = tonumber(fields[i])
    if id then
      if isOver(fields[i + 1], now) then
        redis.call('HDEL', key, fields[i])
      elseif id > after then
        messages[#messages + 1] = fields[i]
        messages[#messages + 1] = fields[i + 1]
      end
    end
  end
  return messages
end
