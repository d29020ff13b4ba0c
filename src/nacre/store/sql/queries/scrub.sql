-- list_plain_tables --
-- Tables with rows of their own, followed by the tables of a virtual table.
SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY name;

-- last_turn_row --
-- Turns rewritten after this get later rows.
SELECT max(row) FROM turns;

-- list_turns_to_scrub --
-- The texts of all turns.
SELECT row, text, tools, author FROM turns WHERE row > :after AND row <= :last ORDER BY row LIMIT :limit;

-- find_turn_to_scrub --
-- The fields of a turn that do not change.
SELECT session, seq, native_id, identity, speaker, trust, flags, time FROM turns WHERE row = :row;

-- delete_touched_twice --
-- The operation touched the file under both names.
DELETE FROM touched WHERE path = :new AND operation IN (SELECT operation FROM touched WHERE path = :old);

-- rename_touched --
-- The file's name contained a secret.
UPDATE touched SET path = :new WHERE path = :old;

-- rename_journal --
-- Rename a file in the journal, except where its old name was removed.
UPDATE intents SET path = :new WHERE path = :old AND applied = 1 AND NOT (
    action = 'remove' AND EXISTS (SELECT 1 FROM operations o WHERE o.id = intents.operation AND o.action = 'scrub')
);
