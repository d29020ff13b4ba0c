-- A trace is one model call or question; body is JSON.
TRUNCATE nacre_rows.traces;
DROP VIEW nacre.traces, nacre.model_calls, nacre.model_refusals;
DROP TABLE nacre_rows.model_refusals;
ALTER TABLE nacre_rows.traces DROP COLUMN subject, DROP COLUMN session, DROP COLUMN seconds;
ALTER TABLE nacre_rows.traces RENAME COLUMN began TO at;
ALTER TABLE nacre_rows.traces RENAME COLUMN steps TO body;
ALTER INDEX nacre_rows.traces_began RENAME TO traces_at;
ALTER TABLE nacre_rows.model_calls DROP COLUMN trace;

CREATE VIEW nacre.traces WITH (security_invoker = true) AS
SELECT id, kind, at, outcome, body, tenant FROM nacre_rows.traces WHERE tenant = nacre.tenant()
WITH CASCADED CHECK OPTION;
CREATE VIEW nacre.model_calls WITH (security_invoker = true) AS
SELECT id, at, day, task, model, background, input, output, cached, written, cost, seconds, outcome, tenant
FROM nacre_rows.model_calls WHERE tenant = nacre.tenant()
WITH CASCADED CHECK OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre.traces, nacre.model_calls TO nacre_tenant;
