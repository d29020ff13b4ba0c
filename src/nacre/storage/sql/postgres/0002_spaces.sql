-- Whose memory it is. A space is a tenant that has a kind, members and a rule; a tenant without one is its own account's
-- alone. These tables are no tenant's: nacre_tenant has no right to any of them, and learns by the functions below what
-- concerns the tenant that it acts for. Who owns the database, and whoever was granted more, manages them.
CREATE SCHEMA nacre_spaces;
REVOKE ALL ON SCHEMA nacre_spaces FROM PUBLIC;

CREATE TABLE nacre_spaces.accounts (
    name TEXT COLLATE "C" PRIMARY KEY,
    created BIGINT NOT NULL
);

-- raising: who may carry a memory of their own into it.
CREATE TABLE nacre_spaces.spaces (
    name TEXT COLLATE "C" PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('person', 'team', 'organisation')),
    raising TEXT COLLATE "C" NOT NULL CHECK (raising IN ('owners', 'members')),
    created BIGINT NOT NULL
);

CREATE TABLE nacre_spaces.members (
    space TEXT COLLATE "C" NOT NULL REFERENCES nacre_spaces.spaces,
    account TEXT COLLATE "C" NOT NULL REFERENCES nacre_spaces.accounts,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('owner', 'member', 'reader', 'service')),
    since BIGINT NOT NULL,
    PRIMARY KEY (space, account)
);
CREATE INDEX members_account ON nacre_spaces.members (account);

-- Of a key there is its hash, never the key. role: the most that whoever has it may be.
CREATE TABLE nacre_spaces.api_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE,
    space TEXT COLLATE "C" NOT NULL REFERENCES nacre_spaces.spaces,
    account TEXT COLLATE "C" NOT NULL REFERENCES nacre_spaces.accounts,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('owner', 'member', 'reader', 'service')),
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    revoked BIGINT,
    last_used BIGINT
);
CREATE INDEX api_keys_space ON nacre_spaces.api_keys (space, created);

-- Ids and names, no texts.
CREATE TABLE nacre_spaces.audit_log (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    space TEXT COLLATE "C" NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL DEFAULT '',
    outcome TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_log_space ON nacre_spaces.audit_log (space, number);

CREATE FUNCTION nacre_spaces.refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is appended to alone' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON nacre_spaces.audit_log
FOR EACH STATEMENT EXECUTE FUNCTION nacre_spaces.refuse();

-- What an account may be in the tenant's space, and its rule; no row where it does not belong to it.
CREATE FUNCTION nacre_spaces.standing(who TEXT, OUT role TEXT, OUT kind TEXT, OUT raising TEXT)
RETURNS SETOF RECORD LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.role, s.kind, s.raising FROM nacre_spaces.spaces s JOIN nacre_spaces.members m ON m.space = s.name
    WHERE s.name = nacre.tenant() AND m.account = who
    UNION ALL
    SELECT 'owner', NULL, NULL WHERE who = nacre.tenant()
        AND NOT EXISTS (SELECT 1 FROM nacre_spaces.spaces s WHERE s.name = nacre.tenant())
$$;

-- The spaces of an account that belongs to the tenant's.
CREATE FUNCTION nacre_spaces.spaces_of(who TEXT, OUT name TEXT, OUT kind TEXT, OUT raising TEXT, OUT role TEXT)
RETURNS SETOF RECORD LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.name, s.kind, s.raising, m.role FROM nacre_spaces.spaces s JOIN nacre_spaces.members m ON m.space = s.name
    WHERE m.account = who AND EXISTS (SELECT 1 FROM nacre_spaces.standing(who)) ORDER BY s.kind, s.name
$$;

-- Of a tenant that is no space nobody keeps a log.
CREATE FUNCTION nacre_spaces.note(who TEXT, done TEXT, about TEXT, became TEXT)
RETURNS VOID LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO nacre_spaces.audit_log (at, space, account, action, subject, outcome)
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, s.name, who, done, about, became
    FROM nacre_spaces.spaces s WHERE s.name = nacre.tenant()
$$;

CREATE FUNCTION nacre_spaces.noted(most BIGINT, OUT at BIGINT, OUT account TEXT, OUT action TEXT, OUT subject TEXT,
    OUT outcome TEXT)
RETURNS SETOF RECORD LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT l.at, l.account, l.action, l.subject, l.outcome FROM nacre_spaces.audit_log l
    WHERE l.space = nacre.tenant() ORDER BY l.number DESC LIMIT most
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA nacre_spaces FROM PUBLIC;
GRANT USAGE ON SCHEMA nacre_spaces TO nacre_tenant;
GRANT EXECUTE ON FUNCTION nacre_spaces.standing(TEXT), nacre_spaces.spaces_of(TEXT),
    nacre_spaces.note(TEXT, TEXT, TEXT, TEXT), nacre_spaces.noted(BIGINT) TO nacre_tenant;
