-- keep_turn_rows_above --
-- Do not reuse row numbers of turns up to this number.
UPDATE sqlite_sequence SET seq = :row WHERE name = 'turns' AND seq < :row;

-- list_short_turns --
-- Turns of one or two sentences, in order.
SELECT text FROM turns WHERE speaker = 'owner' AND length(text) BETWEEN 15 AND 300 ORDER BY row;
