-- Records a session and reads what waits for its user.
-- KEYS  1 session:{user}   2 notify:queue:{user}
-- ARGV  1 seconds that the sessions live   2 session id   3 its text
-- Result  { now in ms, newest direct id or 0, { id, text, id, text ... } in no order }
local now = clock()
writeSessions(KEYS[1], now, tonumber(ARGV[1]), 2, 3, 2)
return { now, newestOf(KEYS[2]), readQueue(KEYS[2], now, 0) }
