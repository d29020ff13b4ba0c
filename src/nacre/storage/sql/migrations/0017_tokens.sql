-- What models read and wrote in a session, as far as its transcript counts.
ALTER TABLE sessions ADD COLUMN tokens_input INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_cached INTEGER;
ALTER TABLE sessions ADD COLUMN tokens_output INTEGER;
