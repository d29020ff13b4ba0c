-- The sessions that show why a memory is doubted, as JSON: what is forgotten of them takes the doubt along.
ALTER TABLE review_queue ADD COLUMN shown_by TEXT NOT NULL DEFAULT '[]';
