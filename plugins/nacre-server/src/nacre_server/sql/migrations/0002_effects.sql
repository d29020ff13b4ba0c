-- needs 1
CREATE TABLE nacre_rows.effects (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    item TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    project TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, item, session)
);
CREATE INDEX effects_project ON nacre_rows.effects (tenant, project, at) WHERE project <> '';
ALTER TABLE nacre_rows.effects ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON nacre_rows.effects USING (tenant = nacre.tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre_rows.effects TO nacre_tenant;
CREATE VIEW nacre.effects WITH (security_invoker = true) AS
SELECT item, session, outcome, at, project, tenant FROM nacre_rows.effects
WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE ON nacre.effects TO nacre_tenant;
