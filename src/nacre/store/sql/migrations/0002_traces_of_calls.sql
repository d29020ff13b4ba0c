-- A trace is one model call or question; body is JSON.
DROP TABLE traces;
CREATE TABLE traces (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,                      -- the task, or 'question'
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX traces_at ON traces (at);
ALTER TABLE model_calls DROP COLUMN trace;
DROP TABLE model_refusals;
