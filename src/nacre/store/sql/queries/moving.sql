-- keep_turn_rows_above --
-- Do not reuse row numbers of turns up to this number.
UPDATE sqlite_sequence SET seq = :row WHERE name = 'turns' AND seq < :row;
