-- The record of a call also has its texts, and an answer that can be reused.
DROP VIEW nacre.model_calls;
ALTER TABLE nacre_rows.model_calls
    ADD COLUMN prompt TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN answer TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN error TEXT COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN key TEXT COLLATE "C";
CREATE INDEX model_calls_key ON nacre_rows.model_calls (tenant, key) WHERE key IS NOT NULL;
CREATE VIEW nacre.model_calls WITH (security_invoker = true) AS
SELECT id, at, day, task, model, background, input, output, cached, written, cost, seconds, outcome, prompt, answer,
    error, key, tenant
FROM nacre_rows.model_calls WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre.model_calls TO nacre_tenant;
DROP VIEW nacre.model_answers;
DROP TABLE nacre_rows.model_answers;
DROP VIEW nacre.traces;
TRUNCATE nacre_rows.traces;
ALTER TABLE nacre_rows.traces DROP COLUMN kind;
ALTER TABLE nacre_rows.traces RENAME TO questions;
CREATE VIEW nacre.questions WITH (security_invoker = true) AS
SELECT id, at, outcome, body, tenant FROM nacre_rows.questions
WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre.questions TO nacre_tenant;
