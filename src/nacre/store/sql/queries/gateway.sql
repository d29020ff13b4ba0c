-- channel_value --
-- What a channel kept under a name.
SELECT value FROM channel_state WHERE channel = :channel AND name = :field;

-- keep_channel_value --
-- Keep it.
INSERT INTO channel_state (channel, name, value) VALUES (:channel, :field, :value)
ON CONFLICT (channel, name) DO UPDATE SET value = excluded.value;

-- insert_inbound --
-- A message; one that came before is left alone.
INSERT INTO inbound (channel, id, key, sender, message, is_owner, received, state)
VALUES (:channel, :id, :key, :sender, :message, :is_owner, :received, :state)
ON CONFLICT (channel, id) DO NOTHING;

-- find_inbound --
-- A message that is kept, by its platform's id.
SELECT seq, key, sender, message, state, line FROM inbound WHERE channel = :channel AND id = :id;

-- set_inbound_message --
-- Another text of it.
UPDATE inbound SET message = :message WHERE seq = :seq;

-- list_open_inbound --
-- What is not answered yet in a conversation, and what was heard since the last answer; of too much, what waits longest
-- and what was heard last.
SELECT * FROM (
    SELECT seq, message, is_owner, received, state, line, attempts FROM inbound
    WHERE key = :key AND state IN ('heard', 'waiting', 'taken')
    ORDER BY state = 'heard', iif(state = 'heard', -seq, seq) LIMIT :limit
) ORDER BY seq;

-- list_waiting_keys --
-- Conversations in which something waits to be answered, the one that waits longest first.
SELECT key, channel FROM inbound WHERE state IN ('waiting', 'taken') GROUP BY key ORDER BY min(seq);

-- count_waiting_inbound --
-- How many messages of a channel wait to be answered.
SELECT count(*) FROM inbound WHERE state IN ('waiting', 'taken') AND channel = :channel;

-- last_waiting --
-- When the last message came that waits in a conversation.
SELECT max(received), count(*) FROM inbound WHERE key = :key AND state = 'waiting';

-- is_taken_inbound --
-- Whether something was being answered in a conversation.
SELECT 1 FROM inbound WHERE key = :key AND state = 'taken' LIMIT 1;

-- take_inbound --
-- It is being answered, and has a line in the transcript.
UPDATE inbound SET state = iif(state = 'heard', 'done', 'taken'), line = :line, attempts = attempts + 1,
    message = iif(state = 'heard', '', message)
WHERE seq = :seq;

-- release_inbound --
-- The gateway ended in good order while these were being answered: that is no failed attempt.
UPDATE inbound SET attempts = max(0, attempts - 1) WHERE state = 'taken';

-- finish_inbound --
-- It is answered; the row stays to know it again.
UPDATE inbound SET state = 'done', message = '' WHERE seq = :seq;

-- is_done_inbound --
-- Whether it is answered, or was forgotten.
SELECT 1 FROM inbound WHERE seq = :seq AND state = 'done';

-- trim_heard --
-- Of what was heard in a conversation, keep the last ones.
DELETE FROM inbound WHERE key = :key AND state = 'heard' AND seq NOT IN (
    SELECT seq FROM inbound WHERE key = :key AND state = 'heard' ORDER BY seq DESC LIMIT :keep
);

-- trim_heard_keys --
-- Of conversations in which something was only heard, keep those that were heard last.
DELETE FROM inbound WHERE state = 'heard' AND key NOT IN (
    SELECT key FROM inbound WHERE state = 'heard' GROUP BY key ORDER BY max(seq) DESC LIMIT :keep
);

-- prune_inbound --
-- Platforms send nothing again after so long.
DELETE FROM inbound WHERE state IN ('done', 'refused') AND received < :before;

-- open_chat_session --
-- The session of a key that goes on.
SELECT * FROM chat_sessions WHERE key = :key AND closed IS NULL;

-- chat_session_of_line --
-- The session of a key that a line of its transcripts is in: ids begin with the time, and its own is the last before.
SELECT * FROM chat_sessions WHERE key = :key AND id < :line ORDER BY id DESC LIMIT 1;

-- list_recent_chat_states --
-- How far the sessions are that were used last, and whether lines of them are not in their files yet.
SELECT id, key, channel, messages, compactions, closed IS NOT NULL,
    EXISTS (SELECT 1 FROM pending_lines WHERE session = chat_sessions.id)
FROM chat_sessions ORDER BY updated DESC LIMIT :most;

-- list_open_chat_states --
-- How many messages wait in each conversation, and how many are being answered.
SELECT key, channel, sum(state = 'waiting'), sum(state = 'taken') FROM inbound
WHERE state IN ('heard', 'waiting', 'taken') GROUP BY key HAVING sum(state != 'heard');

-- find_chat_session --
-- A session by its id, or the beginning of it, or its key.
SELECT * FROM chat_sessions WHERE id = :reference OR key = :reference OR (
    length(:reference) >= 4 AND substr(id, 1, length(:reference)) = :reference
) ORDER BY closed IS NOT NULL, updated DESC LIMIT 3;

-- list_chat_sessions --
-- Sessions, the one that was used last first.
SELECT * FROM chat_sessions
WHERE (:channel IS NULL OR channel = :channel) AND (:closed OR closed IS NULL)
ORDER BY updated DESC, id DESC LIMIT :limit OFFSET :offset;

-- list_stale_chat_sessions --
-- Sessions of a channel that nobody used since a time.
SELECT * FROM chat_sessions WHERE closed IS NULL AND channel = :channel AND updated < :before ORDER BY updated LIMIT :limit;

-- close_chat_session --
-- It does not go on.
UPDATE chat_sessions SET closed = :at WHERE id = :id AND closed IS NULL;

-- count_in_chat_session --
-- What was said, and what the answer cost.
UPDATE chat_sessions SET updated = :at, messages = messages + :messages, tokens = tokens + :tokens,
    input_tokens = input_tokens + :input, output_tokens = output_tokens + :output, cost = cost + :cost
WHERE id = :id;

-- note_chat_indexed --
-- It was made searchable up to here.
UPDATE chat_sessions SET indexed = max(indexed, :messages) WHERE id = :id;

-- note_chat_flushed --
-- What was worth keeping was kept in this cycle.
UPDATE chat_sessions SET flushed = compactions WHERE id = :id;

-- note_chat_compacted --
-- Its beginning is summed up.
UPDATE chat_sessions SET compactions = compactions + 1, tokens = :tokens WHERE id = :id;

-- insert_pending_line --
-- A line for a transcript.
INSERT INTO pending_lines (session, id, line) VALUES (:session, :id, :line);

-- list_pending_lines --
-- Lines that are not in the file yet, in their order.
SELECT seq, id, line FROM pending_lines WHERE session = :session ORDER BY seq;

-- list_pending_sessions --
-- Sessions with such lines.
SELECT DISTINCT session FROM pending_lines;

-- drop_pending_lines --
-- They are in the file.
DELETE FROM pending_lines WHERE session = :session AND seq <= :seq;

-- insert_outbound --
-- A part of an answer.
INSERT INTO outbound (id, key, channel, message, created, state) VALUES (:id, :key, :channel, :message, :created, 'waiting')
ON CONFLICT (id) DO NOTHING;

-- next_outbound --
-- The first part of a conversation that is not sent.
SELECT seq, message, attempts, not_before, created FROM outbound
WHERE key = :key AND state IN ('waiting', 'sending') ORDER BY seq LIMIT 1;

-- list_outbound_keys --
-- Conversations with parts to send.
SELECT DISTINCT key, channel FROM outbound WHERE state IN ('waiting', 'sending');

-- begin_outbound --
-- It is being sent; where it was before, the platform may have taken it already.
UPDATE outbound SET attempts = attempts + 1, may_be_doubled = may_be_doubled + (:counts AND state = 'sending'), state = 'sending'
WHERE seq = :seq;

-- delay_outbound --
-- The platform did not take it; later again.
UPDATE outbound SET state = 'waiting', not_before = :not_before, problem = :problem WHERE seq = :seq;

-- finish_outbound --
-- It is sent, or never will be.
UPDATE outbound SET state = :state, sent = :sent, problem = :problem, message = '' WHERE seq = :seq;

-- prune_outbound --
-- What is done is kept for a while.
DELETE FROM outbound WHERE state IN ('sent', 'failed') AND created < :before;

-- drop_pending_line --
-- One line that is not to be written.
DELETE FROM pending_lines WHERE seq = :seq;

-- erase_inbound --
-- A message by its line: it is answered no more, and edits of it are not written.
UPDATE inbound SET state = 'done', message = '', line = NULL WHERE line = :line;

-- erase_outbound --
-- Parts of the answer that a line tells of: they are sent no more.
DELETE FROM outbound WHERE substr(id, 1, length(:line) + 1) = :line || ':';

-- list_held_words --
-- Messages until they are answered, parts until they are sent, lines until they are in a transcript; each with the
-- session that goes on in its conversation.
SELECT 'inbound', seq, (SELECT id FROM chat_sessions AS s WHERE s.key = inbound.key AND closed IS NULL), message, received
FROM inbound WHERE message != ''
UNION ALL
SELECT 'outbound', seq, (SELECT id FROM chat_sessions AS s WHERE s.key = outbound.key AND closed IS NULL), message, created
FROM outbound WHERE message != ''
UNION ALL
SELECT 'line', pending_lines.seq, session, line, coalesce(updated, 0)
FROM pending_lines LEFT JOIN chat_sessions ON chat_sessions.id = session;

-- drop_outbound --
-- A part that is not to be sent.
DELETE FROM outbound WHERE seq = :seq;

-- list_chat_names --
-- Names of conversations, and of senders.
SELECT name FROM chat_sessions WHERE name != '' UNION SELECT name FROM pairings WHERE name != '';

-- clear_chat_name --
-- A conversation loses its name.
UPDATE chat_sessions SET name = '' WHERE name = :called;

-- clear_pairing_name --
-- A sender loses theirs.
UPDATE pairings SET name = '' WHERE name = :called;

-- delete_chat_session --
-- It goes.
DELETE FROM chat_sessions WHERE id = :id;

-- prune_pairings --
-- Codes that nobody used.
DELETE FROM pairings WHERE approved IS NULL AND asked < :before;

-- gateway_counts --
-- By channel: messages that wait, parts that wait, sent, failed, and may have been sent twice; since a time.
SELECT channel, sum(waiting), sum(sending), sum(sent), sum(failed), sum(doubled) FROM (
    SELECT channel, state IN ('waiting', 'taken') AS waiting, 0 AS sending, 0 AS sent, 0 AS failed, 0 AS doubled FROM inbound
    UNION ALL
    SELECT channel, 0, state IN ('waiting', 'sending'), state = 'sent', state = 'failed', may_be_doubled FROM outbound
) GROUP BY channel ORDER BY channel;

-- list_outbound_problems --
-- The last parts that could not be sent.
SELECT channel, key, state, problem, created, attempts FROM outbound
WHERE problem IS NOT NULL AND state != 'sent' ORDER BY seq DESC LIMIT :limit;

-- find_pairing --
-- A sender's.
SELECT channel, sender, name, code, asked, approved FROM pairings WHERE channel = :channel AND sender = :sender;

-- find_pairing_by_code --
-- By its code.
SELECT channel, sender, name, code, asked, approved FROM pairings WHERE code = :code;

-- list_pairings --
-- All of them, those that wait first.
SELECT channel, sender, name, code, asked, approved FROM pairings ORDER BY approved IS NOT NULL, asked DESC;

-- count_pairings_since --
-- How many of a channel wait that asked since a time.
SELECT count(*) FROM pairings WHERE channel = :channel AND approved IS NULL AND asked >= :since;

-- ask_pairing --
-- A sender asks to be let in; a code that was not used in time is replaced.
INSERT INTO pairings (channel, sender, name, code, asked) VALUES (:channel, :sender, :called, :code, :asked)
ON CONFLICT (channel, sender) DO UPDATE SET code = excluded.code, asked = excluded.asked, name = excluded.name
WHERE approved IS NULL;

-- approve_pairing --
-- The owner lets a sender in.
UPDATE pairings SET approved = :at WHERE channel = :channel AND sender = :sender;

-- drop_pairing --
-- A sender is let in no more.
DELETE FROM pairings WHERE channel = :channel AND sender = :sender;
