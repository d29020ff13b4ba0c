-- keep_turn_rows_above --
-- Up to this row all were those of turns: none is given to another.
UPDATE sqlite_sequence SET seq = :row WHERE name = 'turns' AND seq < :row;

-- list_short_turns --
-- What was said in a sentence or two, in order.
SELECT text FROM turns WHERE speaker = 'owner' AND length(text) BETWEEN 15 AND 300 ORDER BY row;
