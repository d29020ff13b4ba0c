-- insert_question --
-- If it is new.
INSERT INTO questions (id, at, outcome, body) VALUES (:id, :at, :outcome, :body) ON CONFLICT DO NOTHING;

-- list_unanswered_questions --
-- Latest first.
SELECT body FROM questions
WHERE at >= :since AND outcome IN (SELECT value FROM json_each(:outcomes)) ORDER BY at DESC, id DESC;

-- list_question_texts --
-- Of all questions.
SELECT id, body FROM questions ORDER BY id;

-- delete_question --
-- By id.
DELETE FROM questions WHERE id = :id;

-- delete_answered_questions --
-- They can quote forgotten text.
DELETE FROM questions WHERE outcome NOT IN (SELECT value FROM json_each(:unanswered));

-- prune_questions --
-- Old ones, and those beyond the limit.
DELETE FROM questions WHERE at < :before
    OR id NOT IN (SELECT id FROM questions ORDER BY at DESC, id DESC LIMIT :most);
