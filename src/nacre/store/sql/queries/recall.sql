-- find_bylines --
-- Authors and times of some turns, without their texts.
SELECT row, time, author FROM turns WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_narration --
-- Turns in which an agent comments on its tool calls.
SELECT row FROM turns
WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows)) AND speaker = 'agent' AND tools IS NOT NULL;

-- find_texts --
-- Texts of some turns.
SELECT row, text FROM turns WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_turn_by_identity --
-- A turn by an id that is unique within its tool, in any session.
SELECT row FROM turns WHERE identity = :identity;
