-- Reads the sessions of a user.
-- KEYS  1 session:{user}
-- ARGV  none
-- Result  { now in ms, { session id, text, session id, text ... } }
return { clock(), redis.call('HGETALL', KEYS[1]) }
