-- editor_item --
-- What an editor keeps under a key. The table holds passwords and tokens, too: no key beside these is ever asked for.
SELECT value FROM ItemTable
WHERE key = :key AND key IN (
    'workbench.panel.aichat.view.aichat.chatdata', 'composer.composerData', 'composer.composerHeaders',
    'aiService.generations', 'interactive.sessions'
);

-- editor_item_mark --
-- Whether what is kept under a key may have changed: writing replaces the row. The value itself is not read.
SELECT rowid, octet_length(value) FROM ItemTable
WHERE key = :key AND key IN (
    'workbench.panel.aichat.view.aichat.chatdata', 'composer.composerData', 'composer.composerHeaders',
    'aiService.generations', 'interactive.sessions'
);

-- cursor_composers --
-- Every conversation, and what changes when it does, without reading any of them.
SELECT substr(key, 14), rowid, octet_length(value) FROM cursorDiskKV
WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY rowid;

-- cursor_composer --
-- One conversation: its facts and the order of its bubbles.
SELECT value FROM cursorDiskKV WHERE key = 'composerData:' || :composer;

-- cursor_bubble --
-- One message.
SELECT value FROM cursorDiskKV WHERE key = 'bubbleId:' || :composer || ':' || :bubble;

-- cursor_written --
-- Which messages were written after a row, and what row was written last. Values are not read.
SELECT key, rowid FROM cursorDiskKV WHERE rowid > :row ORDER BY rowid;

-- cursor_last_row --
-- The row that was written last.
SELECT coalesce(max(rowid), 0) FROM cursorDiskKV;

-- cursor_key_at --
-- What stands in a row: rows that were numbered anew show by it.
SELECT key FROM cursorDiskKV WHERE rowid = :row;

-- cursor_store_facts --
-- What the command line agent says of a conversation: JSON in hexadecimal digits.
SELECT value FROM meta WHERE key = '0';

-- cursor_store_blob --
-- A message, or the list of messages.
SELECT data FROM blobs WHERE id = :id;

-- cursor_store_blobs --
-- Everything in a store whose list cannot be followed, in the order of writing.
SELECT rowid, data FROM blobs WHERE rowid > :row ORDER BY rowid LIMIT 200;
