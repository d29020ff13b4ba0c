-- Conversations are not summarised.
ALTER TABLE chat_sessions DROP COLUMN compactions;
ALTER TABLE chat_sessions DROP COLUMN flushed;
ALTER TABLE chat_sessions DROP COLUMN tokens;
