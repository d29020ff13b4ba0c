-- list_plain_tables --
-- Tables that hold rows of their own: what a virtual table keeps beneath it follows its owner.
SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY name;

-- last_turn_row --
-- What is written anew meanwhile gets rows beyond it.
SELECT max(row) FROM turns;

-- list_turns_to_scrub --
-- All that a turn says.
SELECT row, text, tools, author FROM turns WHERE row > :after AND row <= :last ORDER BY row LIMIT :limit;

-- find_turn_to_scrub --
-- What stays of a turn.
SELECT session, seq, native_id, identity, speaker, trust, flags, time FROM turns WHERE row = :row;

-- delete_touched_twice --
-- What an operation touched by both names.
DELETE FROM touched WHERE path = :new AND operation IN (SELECT operation FROM touched WHERE path = :old);

-- rename_touched --
-- A file whose name held a secret.
UPDATE touched SET path = :new WHERE path = :old;

-- rename_journal --
-- The same in the journal, but for what takes the old name away.
UPDATE intents SET path = :new WHERE path = :old AND applied = 1 AND NOT (
    action = 'remove' AND EXISTS (SELECT 1 FROM operations o WHERE o.id = intents.operation AND o.action = 'scrub')
);
