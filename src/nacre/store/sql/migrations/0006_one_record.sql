-- The record of a call also has its texts, and an answer that can be reused.
ALTER TABLE model_calls ADD COLUMN prompt TEXT NOT NULL DEFAULT '';
ALTER TABLE model_calls ADD COLUMN answer TEXT NOT NULL DEFAULT '';
ALTER TABLE model_calls ADD COLUMN error TEXT NOT NULL DEFAULT '';
ALTER TABLE model_calls ADD COLUMN key TEXT;
CREATE INDEX model_calls_key ON model_calls (key) WHERE key IS NOT NULL;
DROP TABLE model_answers;
DELETE FROM traces WHERE kind <> 'question';
ALTER TABLE traces DROP COLUMN kind;
ALTER TABLE traces RENAME TO questions;
