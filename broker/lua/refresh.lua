-- Extends the sessions that one node holds of a user, making again what has gone.
-- KEYS  1 session:{user}   2 notify:queue:{user}
-- ARGV  1 seconds that the sessions live   2 session id   3 its text   (4 id, 5 text ...)
-- Result  { now in ms, newest direct id or 0 }
local now = clock()
writeSessions(KEYS[1], now, tonumber(ARGV[1]), 2)
return { now, newestOf(KEYS[2]) }
