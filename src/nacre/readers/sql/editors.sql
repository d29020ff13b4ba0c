-- editor_item --
-- The value of a key. The table also holds passwords and tokens, so only a few keys are read.
SELECT value FROM ItemTable
WHERE key = :key AND key IN (
    'workbench.panel.aichat.view.aichat.chatdata', 'composer.composerData', 'composer.composerHeaders',
    'aiService.generations'
);

-- cursor_composers --
-- All conversations, each with a value that changes with it.
SELECT substr(key, 14), rowid, octet_length(value) FROM cursorDiskKV
WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY rowid;

-- cursor_composer --
-- A conversation: its facts and the order of its bubbles.
SELECT value FROM cursorDiskKV WHERE key = 'composerData:' || :composer;

-- cursor_bubble --
SELECT value FROM cursorDiskKV WHERE key = 'bubbleId:' || :composer || ':' || :bubble;

-- cursor_written --
-- Keys of messages written after a row.
SELECT key, rowid FROM cursorDiskKV WHERE rowid > :row ORDER BY rowid;

-- cursor_last_row --
-- The row written last.
SELECT coalesce(max(rowid), 0) FROM cursorDiskKV;

-- cursor_key_at --
-- The key in a row, which shows whether rows were renumbered.
SELECT key FROM cursorDiskKV WHERE rowid = :row;

-- cursor_store_facts --
-- The command line agent's facts about a conversation: JSON in hexadecimal digits.
SELECT value FROM meta WHERE key = '0';

-- cursor_store_blob --
-- A message, or the list of messages.
SELECT data FROM blobs WHERE id = :id;

-- cursor_store_blobs --
-- All blobs of a store with an unusable list, in the order of writing.
SELECT rowid, data FROM blobs WHERE rowid > :row ORDER BY rowid LIMIT 200;
