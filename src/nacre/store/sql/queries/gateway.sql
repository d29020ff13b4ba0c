-- channel_value --
-- A value stored by a channel.
SELECT value FROM channel_state WHERE channel = :channel AND name = :field;

-- keep_channel_value --
-- Store a channel's value.
INSERT INTO channel_state (channel, name, value) VALUES (:channel, :field, :value)
ON CONFLICT (channel, name) DO UPDATE SET value = excluded.value;

-- insert_inbound --
-- A message received before stays unchanged.
INSERT INTO inbound (channel, id, key, sender, message, is_owner, received, state)
VALUES (:channel, :id, :key, :sender, :message, :is_owner, :received, :state)
ON CONFLICT (channel, id) DO NOTHING;

-- list_open_inbound --
-- Unanswered messages of a conversation, and messages heard since the last answer. If there are too many: the
-- longest waiting and the last heard.
SELECT * FROM (
    SELECT seq, message, is_owner, received, state, line, attempts FROM inbound
    WHERE key = :key AND state IN ('heard', 'waiting', 'taken')
    ORDER BY state = 'heard', iif(state = 'heard', -seq, seq) LIMIT :limit
) ORDER BY seq;

-- list_waiting_keys --
-- Conversations with messages to answer, longest waiting first.
SELECT key, channel FROM inbound WHERE state IN ('waiting', 'taken') GROUP BY key ORDER BY min(seq);

-- last_waiting --
-- The time of a conversation's last waiting message, and the number of these messages.
SELECT max(received), count(*) FROM inbound WHERE key = :key AND state = 'waiting';

-- is_taken_inbound --
-- Whether any message of a conversation was being answered.
SELECT 1 FROM inbound WHERE key = :key AND state = 'taken' LIMIT 1;

-- take_inbound --
-- It is being answered, and has a line in the transcript.
UPDATE inbound SET state = iif(state = 'heard', 'done', 'taken'), line = :line, attempts = attempts + 1,
    message = iif(state = 'heard', '', message)
WHERE seq = :seq;

-- release_inbound --
-- A clean shutdown is not a failed attempt.
UPDATE inbound SET attempts = max(0, attempts - 1) WHERE state = 'taken';

-- finish_inbound --
-- The row is kept to recognise the message.
UPDATE inbound SET state = 'done', message = '' WHERE seq = :seq;

-- is_done_inbound --
-- Whether it was answered or forgotten.
SELECT 1 FROM inbound WHERE seq = :seq AND state = 'done';

-- trim_heard --
-- Keep the last messages heard in a conversation.
DELETE FROM inbound WHERE key = :key AND state = 'heard' AND seq NOT IN (
    SELECT seq FROM inbound WHERE key = :key AND state = 'heard' ORDER BY seq DESC LIMIT :keep
);

-- trim_heard_keys --
-- Keep the latest conversations with only heard messages.
DELETE FROM inbound WHERE state = 'heard' AND key NOT IN (
    SELECT key FROM inbound WHERE state = 'heard' GROUP BY key ORDER BY max(seq) DESC LIMIT :keep
);

-- prune_inbound --
-- Platforms do not send such old messages again.
DELETE FROM inbound WHERE state IN ('done', 'refused') AND received < :before;

-- open_chat_session --
-- The open session of a conversation.
SELECT * FROM chat_sessions WHERE key = :key AND closed IS NULL;

-- list_recent_chat_states --
-- The progress of the most recently used sessions, and whether lines are missing from their files.
SELECT id, key, channel, messages, closed IS NOT NULL,
    EXISTS (SELECT 1 FROM pending_lines WHERE session = chat_sessions.id)
FROM chat_sessions ORDER BY updated DESC LIMIT :most;

-- list_open_chat_states --
-- The numbers of messages waiting and being answered in each conversation.
SELECT key, channel, sum(state = 'waiting'), sum(state = 'taken') FROM inbound
WHERE state IN ('heard', 'waiting', 'taken') GROUP BY key HAVING sum(state != 'heard');

-- find_chat_session --
-- By id, beginning of the id, or key.
SELECT * FROM chat_sessions WHERE id = :reference OR key = :reference OR (
    length(:reference) >= 4 AND substr(id, 1, length(:reference)) = :reference
) ORDER BY closed IS NOT NULL, updated DESC LIMIT 3;

-- list_chat_sessions --
-- Last used first.
SELECT * FROM chat_sessions
WHERE (:channel IS NULL OR channel = :channel) AND (:closed OR closed IS NULL)
ORDER BY updated DESC, id DESC LIMIT :limit OFFSET :offset;

-- list_stale_chat_sessions --
-- Sessions of a channel unused since a time.
SELECT * FROM chat_sessions WHERE closed IS NULL AND channel = :channel AND updated < :before ORDER BY updated LIMIT :limit;

-- close_chat_session --
-- It does not continue.
UPDATE chat_sessions SET closed = :at WHERE id = :id AND closed IS NULL;

-- count_in_chat_session --
-- The messages, and the cost of the answer.
UPDATE chat_sessions SET updated = :at, messages = messages + :messages,
    input_tokens = input_tokens + :input, output_tokens = output_tokens + :output, cost = cost + :cost
WHERE id = :id;

-- note_chat_indexed --
-- The number of searchable messages.
UPDATE chat_sessions SET indexed = max(indexed, :messages) WHERE id = :session;

-- insert_pending_line --
-- A line for a transcript.
INSERT INTO pending_lines (session, id, line) VALUES (:session, :id, :line);

-- list_pending_lines --
-- Lines not yet in the file, in order.
SELECT seq, id, line FROM pending_lines WHERE session = :session ORDER BY seq;

-- list_pending_sessions --
-- Sessions with such lines.
SELECT DISTINCT session FROM pending_lines;

-- drop_pending_lines --
-- They were written to the file.
DELETE FROM pending_lines WHERE session = :session AND seq <= :seq;

-- insert_outbound --
-- A part of an answer.
INSERT INTO outbound (id, key, channel, message, created, state) VALUES (:id, :key, :channel, :message, :created, 'waiting')
ON CONFLICT (id) DO NOTHING;

-- next_outbound --
-- The first unsent part of a conversation.
SELECT seq, key, message, created, attempts, nullif(not_before, 0) FROM outbound
WHERE key = :key AND state IN ('waiting', 'sending') ORDER BY seq LIMIT 1;

-- list_outbound_keys --
-- Conversations with parts to send.
SELECT DISTINCT key, channel FROM outbound WHERE state IN ('waiting', 'sending');

-- begin_outbound --
-- If it was being sent before, the platform might have accepted it already.
UPDATE outbound SET attempts = attempts + 1, may_be_doubled = may_be_doubled + (:counts AND state = 'sending'), state = 'sending'
WHERE seq = :seq;

-- delay_outbound --
-- The platform rejected it. It is retried later.
UPDATE outbound SET state = 'waiting', not_before = :not_before, problem = :problem WHERE seq = :seq;

-- finish_outbound --
-- It was sent, or cannot be sent.
UPDATE outbound SET state = :state, sent = :sent, problem = :problem, message = '' WHERE seq = :seq;

-- prune_outbound --
-- Delete old finished parts.
DELETE FROM outbound WHERE state IN ('sent', 'failed') AND created < :before;

-- drop_pending_line --
-- It must not be written.
DELETE FROM pending_lines WHERE seq = :seq;

-- erase_inbound --
-- The message with a line. It is not answered, and its edits are not written.
UPDATE inbound SET state = 'done', message = '', line = NULL WHERE line = :line;

-- erase_outbound --
-- Parts of the answer to a line. They are not sent.
DELETE FROM outbound WHERE substr(id, 1, length(:line) + 1) = :line || ':';

-- list_held_words --
-- Unanswered messages, unsent parts, and lines missing from transcripts, with the open session of the
-- conversation.
SELECT 'inbound', seq, (SELECT id FROM chat_sessions AS s WHERE s.key = inbound.key AND closed IS NULL), message, received
FROM inbound WHERE message != ''
UNION ALL
SELECT 'outbound', seq, (SELECT id FROM chat_sessions AS s WHERE s.key = outbound.key AND closed IS NULL), message, created
FROM outbound WHERE message != ''
UNION ALL
SELECT 'line', pending_lines.seq, session, line, coalesce(updated, 0)
FROM pending_lines LEFT JOIN chat_sessions ON chat_sessions.id = session;

-- drop_outbound --
-- It must not be sent.
DELETE FROM outbound WHERE seq = :seq;

-- list_chat_names --
-- Names of conversations and senders.
SELECT name FROM chat_sessions WHERE name != '' UNION SELECT name FROM pairings WHERE name != '';

-- clear_chat_name --
-- Of a conversation.
UPDATE chat_sessions SET name = '' WHERE name = :called;

-- clear_pairing_name --
-- Of a sender.
UPDATE pairings SET name = '' WHERE name = :called;

-- delete_chat_session --
-- After it was forgotten.
DELETE FROM chat_sessions WHERE id = :session;

-- prune_pairings --
-- Delete unused codes.
DELETE FROM pairings WHERE approved IS NULL AND asked < :before;

-- gateway_counts --
-- By channel, since a time: waiting messages, and parts waiting, sent, failed, or perhaps sent twice.
SELECT channel, sum(waiting), sum(sending), sum(sent), sum(failed), sum(doubled) FROM (
    SELECT channel, state IN ('waiting', 'taken') AS waiting, 0 AS sending, 0 AS sent, 0 AS failed, 0 AS doubled FROM inbound
    UNION ALL
    SELECT channel, 0, state IN ('waiting', 'sending'), state = 'sent', state = 'failed', may_be_doubled FROM outbound
) GROUP BY channel ORDER BY channel;

-- list_outbound_problems --
-- The latest parts that could not be sent.
SELECT channel, key, state, problem, created, attempts FROM outbound
WHERE problem IS NOT NULL AND state != 'sent' ORDER BY seq DESC LIMIT :limit;

-- find_pairing --
-- The pairing of a sender.
SELECT channel, sender, name, code, asked, approved FROM pairings WHERE channel = :channel AND sender = :sender;

-- find_pairing_by_code --
-- By code.
SELECT channel, sender, name, code, asked, approved FROM pairings WHERE code = :code;

-- list_pairings --
-- Pending first.
SELECT channel, sender, name, code, asked, approved FROM pairings ORDER BY approved IS NOT NULL, asked DESC;

-- count_pairings_since --
-- A channel's pending requests since a time.
SELECT count(*) FROM pairings WHERE channel = :channel AND approved IS NULL AND asked >= :since;

-- ask_pairing --
-- A sender requests access. An expired code is replaced.
INSERT INTO pairings (channel, sender, name, code, asked) VALUES (:channel, :sender, :name, :code, :asked)
ON CONFLICT (channel, sender) DO UPDATE SET code = excluded.code, asked = excluded.asked, name = excluded.name
WHERE approved IS NULL;

-- approve_pairing --
-- Grant access.
UPDATE pairings SET approved = :at WHERE channel = :channel AND sender = :sender;

-- drop_pairing --
-- End access.
DELETE FROM pairings WHERE channel = :channel AND sender = :sender;
