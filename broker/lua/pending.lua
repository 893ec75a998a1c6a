-- Reads the messages that wait for a user.
-- KEYS  1 notify:queue:{user}
-- ARGV  1 the id after which to read
-- Result  { id, text, id, text ... } in no order
return readQueue(KEYS[1], clock(), tonumber(ARGV[1]))
