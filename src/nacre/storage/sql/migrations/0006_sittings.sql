-- A recall counts once a session: when it last did, in epoch milliseconds; nothing where a memory was only looked at.
ALTER TABLE uses ADD COLUMN recalled INTEGER;

-- What a host calls its sessions may hold a secret: only hashes of the names are kept.
DELETE FROM uses WHERE session NOT LIKE 'sitting:%';
