-- Extends the sessions that one node holds of some users, making again those that have gone. Only the keys of the first user are declared, for a cluster
-- takes no script with keys of several slots. The others are used all the same: Redis refuses each that this server does not have.
-- KEYS  1 session:{user}   2 notify:queue:{user}, of the first user
-- ARGV  1 seconds that the sessions live   2, 3 the names of these keys with no user in their braces
--       4 user, or '' for the one before   5 session id   6 its text   (7 user or '', 8 id, 9 text ...)
-- Result  { now in ms, newest direct id or 0 of the first user, of the next ... }; of a user who was refused, nil. A fault with one who is alone is raised.
local now = clock()
local ttlSec = tonumber(ARGV[1])
local sessionHead = string.sub(ARGV[2], 1, -2)
local queueHead = string.sub(ARGV[3], 1, -2)

-- ARGV from `first` on, before `after`.
local function refreshUser(first, after)
  local user = ARGV[first]
  writeSessions(sessionHead .. user .. '}', now, ttlSec, first + 1, after - 1, 3)
  return newestOf(queueHead .. user .. '}')
end

local answers = { now }
local first = 4
while first <= #ARGV do
  local after = first + 3
  while ARGV[after] == '' do after = after + 3 end
  if first == 4 and after > #ARGV then return { now, refreshUser(first, after) } end
  local done, newest = pcall(refreshUser, first, after)
  answers[#answers + 1] = done and newest
  first = after
end
return answers
