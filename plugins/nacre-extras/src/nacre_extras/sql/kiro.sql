-- kiro_conversations --
-- All conversations, with a mark that changes when a conversation is saved. The table belongs to Kiro CLI.
SELECT conversation_id, updated_at, octet_length(value) FROM conversations_v2 ORDER BY rowid;

-- kiro_conversation --
SELECT * FROM conversations_v2 WHERE conversation_id = :name ORDER BY updated_at DESC LIMIT 1;

-- amazon_q_conversations --
-- The last conversation in each folder. The table belongs to Amazon Q and to old versions of Kiro CLI.
SELECT key, octet_length(value), substr(value, -100) FROM conversations ORDER BY rowid;

-- amazon_q_conversation --
SELECT * FROM conversations WHERE key = :name;
