-- needs 3
-- The sessions that show why a memory is doubted, as JSON: what is forgotten of them takes the doubt along.
ALTER TABLE nacre_rows.review_queue ADD COLUMN shown_by TEXT COLLATE "C" NOT NULL DEFAULT '[]';
CREATE OR REPLACE VIEW nacre.review_queue WITH (security_invoker = true) AS
SELECT id, memory, reason, detail, suggested, status, created, resolved, tenant, shown_by
FROM nacre_rows.review_queue WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION;
