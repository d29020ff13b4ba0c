-- What a tool calls a session besides its title: a room, or a conversation in a channel.
ALTER TABLE sessions ADD COLUMN label TEXT;
CREATE INDEX sessions_labels ON sessions (tool, label) WHERE label IS NOT NULL;
