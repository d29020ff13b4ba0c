-- find_bylines --
-- Who wrote some turns and when; what they say stays unread.
SELECT row, time, author FROM turns WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_texts --
-- What some turns say.
SELECT row, text FROM turns WHERE row IN (SELECT CAST(value AS BIGINT) FROM json_each(:rows));

-- find_turn_by_identity --
-- A turn whose id is unique within its tool, whatever session holds it now.
SELECT row FROM turns WHERE identity = :identity;
