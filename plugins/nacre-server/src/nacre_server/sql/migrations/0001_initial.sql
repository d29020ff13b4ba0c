-- Statements use the views in nacre, which, like row-level security, show one tenant's rows of tables in nacre_rows.
CREATE SCHEMA nacre_rows;
CREATE SCHEMA nacre;
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

-- The role belongs to the cluster. Other databases may have created it, or may create it concurrently.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'nacre_tenant') THEN
        CREATE ROLE nacre_tenant NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'nacre_tenant', 'SET') THEN
        EXECUTE format('GRANT nacre_tenant TO %I', current_user);
    END IF;
EXCEPTION WHEN unique_violation THEN NULL;
END
$$;

CREATE TABLE nacre_rows.schema_version (
    number INTEGER PRIMARY KEY,
    needs INTEGER NOT NULL, -- oldest schema whose programs work with this one
    applied TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- Raises an error if no tenant is set, or the setting was withdrawn.
CREATE FUNCTION nacre.tenant() RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE
    RETURN current_setting(
        CASE current_setting('nacre.tenant') WHEN '' THEN 'nacre.no_tenant_was_named' ELSE 'nacre.tenant' END
    );

-- Functions of SQLite that PostgreSQL lacks.
CREATE FUNCTION nacre.instr(held TEXT, part TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN strpos(held, part);
DO $$
BEGIN -- all letters, in any locale, if the server supports it
    EXECUTE format(
        'CREATE FUNCTION nacre.lower(told TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
        RETURN pg_catalog.lower(told COLLATE %I)',
        coalesce((
            SELECT c.collname FROM pg_collation c JOIN pg_database d ON d.datname = current_database()
            WHERE c.collname = 'pg_c_utf8' AND c.collencoding IN (-1, d.encoding)
        ), 'default')
    );
END
$$;
CREATE FUNCTION nacre.unixepoch() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
    RETURN floor(extract(epoch FROM now()))::bigint;
CREATE FUNCTION nacre.most(rows BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN rows >= 0 THEN rows END;
CREATE FUNCTION nacre.unhex(digits TEXT) RETURNS BYTEA LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN decode(digits, 'hex');
CREATE FUNCTION nacre.iif(BOOLEAN, ANYCOMPATIBLE, ANYCOMPATIBLE) RETURNS ANYCOMPATIBLE
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE WHEN $1 THEN $2 ELSE $3 END';
CREATE FUNCTION nacre.max(ANYCOMPATIBLE, ANYCOMPATIBLE) RETURNS ANYCOMPATIBLE LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE greatest($1, $2) END';
CREATE FUNCTION nacre.min(ANYCOMPATIBLE, ANYCOMPATIBLE) RETURNS ANYCOMPATIBLE LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE least($1, $2) END';

-- Days from seconds since 1970: in UTC, and in the time zone of the connection.
CREATE FUNCTION nacre.date(seconds BIGINT, unit TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_char(to_timestamp(seconds) AT TIME ZONE 'UTC', 'YYYY-MM-DD');
CREATE FUNCTION nacre.date(seconds BIGINT, unit TEXT, zone TEXT) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE
    RETURN to_char(to_timestamp(seconds), 'YYYY-MM-DD');

-- Texts on a server cannot contain NUL.
CREATE FUNCTION nacre.without_nul(told TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN strpos(told, '\u0000') = 0 THEN told
        ELSE regexp_replace(told, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END;

-- The elements of an array or the values of an object, as texts.
CREATE FUNCTION nacre.json_each(told TEXT, OUT key TEXT, OUT value TEXT) RETURNS SETOF RECORD
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    told := nacre.without_nul(told);
    IF json_typeof(told::json) = 'object' THEN
        RETURN QUERY SELECT e.key, e.value FROM json_each_text(told::json) e;
    ELSE
        RETURN QUERY SELECT (e.ordinality - 1)::text, e.value
        FROM json_array_elements_text(told::json) WITH ORDINALITY e (value, ordinality);
    END IF;
END
$$;

-- A value by its path ($.name or $[0]), or an element by its number.
CREATE FUNCTION nacre.json_extract(told TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN jsonb_path_query_first(nacre.without_nul(told)::jsonb, path::jsonpath) #>> '{}';
CREATE FUNCTION nacre.json_each(told TEXT, path TEXT, OUT key TEXT, OUT value TEXT) RETURNS SETOF RECORD
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT e.key, e.value FROM nacre.json_each(nacre.json_extract(told, path)) e
$$;
CREATE FUNCTION nacre.json_element(told TEXT, number INTEGER) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN told::json ->> number;
CREATE OPERATOR nacre.->> (LEFTARG = TEXT, RIGHTARG = INTEGER, FUNCTION = nacre.json_element);
CREATE FUNCTION nacre.json_set(told TEXT, path TEXT, value TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN jsonb_set(nacre.without_nul(told)::jsonb, ARRAY[substr(path, 3)], to_jsonb(value))::text;

-- The sums of two objects with counts.
CREATE FUNCTION nacre.counts_added(told TEXT, more TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(json_object_agg(record, times), '{}')::text FROM (
        SELECT key AS record, sum(value::bigint) AS times FROM (
            SELECT key, value FROM nacre.json_each(told) UNION ALL SELECT key, value FROM nacre.json_each(more)
        ) AS each GROUP BY key
    ) AS added
$$;

SET LOCAL search_path = nacre_rows, nacre, public;

-- Columns have the same order as in the view, because all are read from either.
CREATE TABLE memories (
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    importance BIGINT NOT NULL,
    expiry TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C",
    inbox BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    valid_since TEXT COLLATE "C",
    valid_until TEXT COLLATE "C",
    speaker TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C" NOT NULL,
    confidence TEXT COLLATE "C" NOT NULL,
    confidence_score DOUBLE PRECISION,
    session TEXT COLLATE "C",
    turns TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    source_file TEXT COLLATE "C",
    canonical_key TEXT COLLATE "C",
    evergreen BIGINT NOT NULL DEFAULT 0,
    author TEXT COLLATE "C",
    triggers TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    suppressed_contexts TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    superseded_by TEXT COLLATE "C",
    retired_at BIGINT,
    retired_reason TEXT COLLATE "C",
    extra TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    content_hash BYTEA NOT NULL,
    expires_on TEXT COLLATE "C",
    proposed BIGINT NOT NULL DEFAULT 0,
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, id)
);

CREATE INDEX memories_content_hash ON memories (tenant, content_hash);

CREATE INDEX memories_canonical_key ON memories (tenant, canonical_key, kind) WHERE canonical_key IS NOT NULL;

CREATE INDEX memories_session ON memories (tenant, session) WHERE session IS NOT NULL;

CREATE INDEX memories_project ON memories (tenant, project, updated);

CREATE TABLE tags (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    tag TEXT COLLATE "C" NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, memory, tag)
);

CREATE INDEX tags_tag ON tags (tenant, tag);

CREATE TABLE vault_files (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    path TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL,
    mtime_ns BIGINT NOT NULL,
    size BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, path)
);

CREATE INDEX vault_files_memory ON vault_files (tenant, memory);

CREATE TABLE projects (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    mtime_ns BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, slug)
);

CREATE TABLE project_keys (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key, value)
);

CREATE TABLE sessions (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    tool TEXT COLLATE "C" NOT NULL,
    native_id TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C",
    title TEXT COLLATE "C",
    cwd TEXT COLLATE "C",
    branch TEXT COLLATE "C",
    kind TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C",
    started BIGINT,
    ended BIGINT,
    tool_version TEXT COLLATE "C",
    model TEXT COLLATE "C",
    file TEXT COLLATE "C",
    turns BIGINT NOT NULL DEFAULT 0,
    extracted BIGINT NOT NULL DEFAULT 0,
    tokens_input BIGINT,
    tokens_cached BIGINT,
    tokens_output BIGINT,
    unwritten BIGINT,
    asked BIGINT,
    met_as TEXT COLLATE "C",
    label TEXT COLLATE "C",
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, tool, native_id)
);

CREATE INDEX sessions_started ON sessions (tenant, started);

CREATE TABLE turns (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    session BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    native_id TEXT COLLATE "C" NOT NULL,
    identity BYTEA NOT NULL,
    speaker TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C" NOT NULL,
    flags BIGINT NOT NULL,
    time BIGINT,
    author TEXT COLLATE "C",
    text TEXT COLLATE "C" NOT NULL,
    tools TEXT COLLATE "C",
    PRIMARY KEY (tenant, row),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, row) ON DELETE CASCADE,
    UNIQUE (tenant, identity),
    UNIQUE (tenant, session, seq)
);

-- The highest row of deleted turns, which is not reused.
CREATE TABLE last_turns (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT NOT NULL,
    PRIMARY KEY (tenant)
);

CREATE INDEX turns_author ON turns (tenant, author) WHERE author IS NOT NULL;

CREATE TABLE passages (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    hash BYTEA NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, hash)
);

CREATE TABLE turn_passages (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    passage BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    FOREIGN KEY (tenant, turn) REFERENCES turns (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, passage, turn)
);

CREATE INDEX turn_passages_turn ON turn_passages (tenant, turn);

CREATE TABLE passage_bits (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    first BIGINT NOT NULL,
    count BIGINT NOT NULL,
    bits BYTEA NOT NULL,
    PRIMARY KEY (tenant, first)
);

CREATE TABLE memory_vectors (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    vector BYTEA NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, memory, ordinal)
);

CREATE TABLE embedding (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE usage (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    recall_count BIGINT NOT NULL DEFAULT 0,
    last_recalled BIGINT,
    recall_intervals TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    confirmations BIGINT NOT NULL DEFAULT 0,
    contradictions BIGINT NOT NULL DEFAULT 0,
    quality DOUBLE PRECISION NOT NULL DEFAULT 0.5,
    access_count BIGINT NOT NULL DEFAULT 0,
    steps BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, memory)
);

CREATE TABLE transcript_cursors (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    path TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    inode BIGINT NOT NULL,
    "offset" BIGINT NOT NULL,
    size BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    carry TEXT COLLATE "C" NOT NULL,
    unknown TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    corrupt BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, path)
);

CREATE TABLE ingest_log (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    started BIGINT NOT NULL,
    finished BIGINT,
    files BIGINT NOT NULL DEFAULT 0,
    sessions BIGINT NOT NULL DEFAULT 0,
    turns BIGINT NOT NULL DEFAULT 0,
    memories BIGINT NOT NULL DEFAULT 0,
    skipped BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE intents (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    seq BIGINT GENERATED BY DEFAULT AS IDENTITY,
    action TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    document TEXT COLLATE "C",
    base BYTEA,
    memory TEXT COLLATE "C",
    operation TEXT COLLATE "C",
    former TEXT COLLATE "C",
    applied BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX intents_path ON intents (tenant, path);

CREATE TABLE confirmations (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    ordinal BIGINT NOT NULL,
    at BIGINT NOT NULL,
    session TEXT COLLATE "C",
    turns TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, memory, ordinal)
);

CREATE INDEX confirmations_session ON confirmations (tenant, session) WHERE session IS NOT NULL;

CREATE TABLE unsettled (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory)
);

CREATE TABLE uses (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    session TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    paired BIGINT NOT NULL DEFAULT 0,
    judged BIGINT NOT NULL DEFAULT 0,
    recalled BIGINT,
    PRIMARY KEY (tenant, session, memory)
);

CREATE INDEX uses_at ON uses (tenant, at);

CREATE TABLE usage_values (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE co_recall (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    a TEXT COLLATE "C" NOT NULL,
    b TEXT COLLATE "C" NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    day BIGINT NOT NULL,
    until BIGINT NOT NULL,
    sessions BIGINT NOT NULL,
    PRIMARY KEY (tenant, a, b)
);

CREATE INDEX co_recall_b ON co_recall (tenant, b);

CREATE TABLE review_queue (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id BIGINT GENERATED BY DEFAULT AS IDENTITY,
    memory TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL DEFAULT 'pending',
    created BIGINT NOT NULL,
    resolved BIGINT,
    shown_by TEXT COLLATE "C" NOT NULL DEFAULT '[]', -- JSON: the sessions behind a doubt, which is deleted with them
    PRIMARY KEY (tenant, id)
);

CREATE UNIQUE INDEX review_queue_pending ON review_queue (tenant, memory, reason) WHERE status = 'pending';

CREATE INDEX memories_superseded_by ON memories (tenant, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE operations (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C",
    why TEXT COLLATE "C",
    closed BIGINT NOT NULL DEFAULT 0,
    committed TEXT COLLATE "C",
    actor TEXT COLLATE "C",
    PRIMARY KEY (tenant, id)
);

CREATE INDEX operations_at ON operations (tenant, at);

CREATE INDEX operations_open ON operations (tenant, id) WHERE closed = 0;

CREATE INDEX operations_pending ON operations (tenant, id) WHERE committed IS NULL;

CREATE TABLE touched (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    operation TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL DEFAULT '',
    FOREIGN KEY (tenant, operation) REFERENCES operations (tenant, id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, operation, path)
);

CREATE INDEX touched_memory ON touched (tenant, memory);

CREATE INDEX intents_waiting ON intents (tenant, seq) WHERE applied = 0;

CREATE INDEX intents_operation ON intents (tenant, operation);

CREATE TABLE ledger_end (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    one BIGINT NOT NULL CHECK (one = 1),
    size BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (tenant, one)
);

CREATE TABLE git_state (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE tombstones (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    kind TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, kind, value, run)
);

CREATE TABLE standing_retirements (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    pattern TEXT COLLATE "C" NOT NULL,
    match TEXT COLLATE "C" NOT NULL,
    canonical_key TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    contexts TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE forgetting_values (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE names (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, name)
);

CREATE INDEX sessions_project ON sessions (tenant, project) WHERE project IS NOT NULL;

CREATE TABLE archived (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    path TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    pack TEXT COLLATE "C",
    until BIGINT NOT NULL DEFAULT 0,
    size BIGINT NOT NULL DEFAULT 0,
    raw BIGINT NOT NULL DEFAULT 0,
    inode BIGINT NOT NULL DEFAULT 0,
    fingerprint TEXT COLLATE "C" NOT NULL DEFAULT '',
    changed BIGINT NOT NULL DEFAULT 0,
    withheld BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, path)
);

CREATE INDEX archived_fingerprint ON archived (tenant, fingerprint);

CREATE TABLE archive_segments (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    archived BIGINT NOT NULL,
    number BIGINT NOT NULL,
    start BIGINT NOT NULL,
    until BIGINT NOT NULL,
    digest BYTEA NOT NULL,
    is_copy BIGINT NOT NULL,
    FOREIGN KEY (tenant, archived) REFERENCES archived (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, archived, number)
);

CREATE INDEX archive_segments_digest ON archive_segments (tenant, digest);

CREATE TABLE files (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    path TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, path)
);

CREATE INDEX files_name ON files (tenant, name);

CREATE TABLE file_uses (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    file BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    FOREIGN KEY (tenant, file) REFERENCES files (tenant, row) ON DELETE CASCADE,
    FOREIGN KEY (tenant, turn) REFERENCES turns (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, file, turn, action)
);

CREATE INDEX file_uses_turn ON file_uses (tenant, turn);

CREATE TABLE session_files (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    session BIGINT NOT NULL,
    file TEXT COLLATE "C" NOT NULL,
    held TEXT COLLATE "C",
    PRIMARY KEY (tenant, row),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, row) ON DELETE CASCADE,
    UNIQUE (tenant, session, file)
);

CREATE INDEX session_files_file ON session_files (tenant, file);

CREATE TABLE claims (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    entity TEXT COLLATE "C" NOT NULL,
    attribute TEXT COLLATE "C" NOT NULL,
    predicate TEXT COLLATE "C" NOT NULL,
    object TEXT COLLATE "C" NOT NULL,
    confidence DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
);

CREATE INDEX claims_entity ON claims (tenant, entity, attribute);

CREATE INDEX claims_attribute ON claims (tenant, attribute);

CREATE TABLE claims_waiting (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    since BIGINT NOT NULL,
    due BIGINT NOT NULL DEFAULT 0,
    tries BIGINT NOT NULL DEFAULT 0,
    note TEXT COLLATE "C",
    reworded BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, memory)
);

CREATE INDEX claims_waiting_due ON claims_waiting (tenant, due);

CREATE TABLE conflicts (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    older TEXT COLLATE "C" NOT NULL,
    newer TEXT COLLATE "C" NOT NULL,
    relation TEXT COLLATE "C" NOT NULL,
    confidence DOUBLE PRECISION NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, older, newer)
);

CREATE TABLE other_passages (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    hash BYTEA NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, hash)
);

CREATE TABLE other_turn_passages (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    passage BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    FOREIGN KEY (tenant, turn) REFERENCES turns (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, passage, turn)
);

CREATE INDEX other_turn_passages_turn ON other_turn_passages (tenant, turn);

CREATE TABLE other_passage_bits (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    first BIGINT NOT NULL,
    count BIGINT NOT NULL,
    bits BYTEA NOT NULL,
    PRIMARY KEY (tenant, first)
);

CREATE TABLE other_memory_vectors (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    vector BYTEA NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, memory, ordinal)
);

CREATE TABLE other_embedding (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE model_calls (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    task TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    background BIGINT NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    written BIGINT NOT NULL,
    cost BIGINT,
    seconds DOUBLE PRECISION NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX model_calls_day ON model_calls (tenant, day);

CREATE TABLE model_health (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    model TEXT COLLATE "C" NOT NULL,
    until BIGINT NOT NULL,
    told TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, model)
);

CREATE TABLE model_answers (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    answer TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX model_answers_at ON model_answers (tenant, at);

CREATE TABLE traces (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX traces_at ON traces (tenant, at);

CREATE TABLE candidates (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    session TEXT COLLATE "C",
    why TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C",
    score DOUBLE PRECISION NOT NULL,
    found BIGINT NOT NULL,
    dropped BIGINT,
    memory TEXT COLLATE "C",
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, hash)
);

CREATE INDEX candidates_session ON candidates (tenant, session);

CREATE TABLE memory_names (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    name TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL,
    written TEXT COLLATE "C" NOT NULL,
    is_alias BIGINT NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, name, memory)
);

CREATE INDEX memory_names_memory ON memory_names (tenant, memory);

CREATE TABLE mentions (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    source TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    FOREIGN KEY (tenant, source) REFERENCES memories (tenant, id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, source, name)
);

CREATE INDEX mentions_name ON mentions (tenant, name);

CREATE TABLE project_dependencies (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    project TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project, name)
);

CREATE TABLE links (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    source TEXT COLLATE "C" NOT NULL,
    rel TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL DEFAULT 'manual',
    strength DOUBLE PRECISION,
    valid_since TEXT COLLATE "C",
    valid_until TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    PRIMARY KEY (tenant, source, rel, target)
);

CREATE INDEX links_target ON links (tenant, target);

CREATE INDEX links_origin ON links (tenant, origin);

CREATE TABLE code_projects (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    project TEXT COLLATE "C" NOT NULL,
    root TEXT COLLATE "C" NOT NULL,
    read_at BIGINT NOT NULL,
    is_linked BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, row),
    UNIQUE (tenant, project)
);

CREATE TABLE code_files (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    project BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    language TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    facts BYTEA NOT NULL,
    PRIMARY KEY (tenant, row),
    FOREIGN KEY (tenant, project) REFERENCES code_projects (tenant, row) ON DELETE CASCADE,
    UNIQUE (tenant, project, path)
);

CREATE INDEX code_files_name ON code_files (tenant, name);

CREATE TABLE code_symbols (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    row BIGINT GENERATED BY DEFAULT AS IDENTITY,
    file BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    qualified TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    line BIGINT NOT NULL,
    end_line BIGINT NOT NULL,
    PRIMARY KEY (tenant, row),
    FOREIGN KEY (tenant, file) REFERENCES code_files (tenant, row) ON DELETE CASCADE,
    UNIQUE (tenant, file, qualified)
);

CREATE INDEX code_symbols_name ON code_symbols (tenant, name);

CREATE TABLE code_edges (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    target BIGINT NOT NULL,
    rel TEXT COLLATE "C" NOT NULL,
    source BIGINT NOT NULL,
    line BIGINT NOT NULL,
    FOREIGN KEY (tenant, target) REFERENCES code_symbols (tenant, row) ON DELETE CASCADE,
    FOREIGN KEY (tenant, source) REFERENCES code_symbols (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, target, rel, source)
);

CREATE INDEX code_edges_source ON code_edges (tenant, source);

CREATE TABLE code_outside (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    module TEXT COLLATE "C" NOT NULL,
    file BIGINT NOT NULL,
    line BIGINT NOT NULL,
    FOREIGN KEY (tenant, file) REFERENCES code_files (tenant, row) ON DELETE CASCADE,
    PRIMARY KEY (tenant, module, file)
);

CREATE INDEX code_outside_file ON code_outside (tenant, file);

CREATE TABLE code_mentions (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    key TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL,
    written TEXT COLLATE "C" NOT NULL,
    manner TEXT COLLATE "C" NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE,
    PRIMARY KEY (tenant, key, memory, written)
);

CREATE INDEX code_mentions_memory ON code_mentions (tenant, memory);

CREATE TABLE code_mentions_read (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
);

CREATE TABLE stale_memories (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    memory TEXT COLLATE "C" NOT NULL,
    updated BIGINT NOT NULL,
    confidence DOUBLE PRECISION NOT NULL,
    detail TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
);

CREATE INDEX sessions_latest ON sessions (tenant, tool, coalesce(started, ended, 0)) WHERE kind = 'main';

CREATE TABLE unreadable_files (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    path TEXT COLLATE "C" NOT NULL,
    mtime_ns BIGINT NOT NULL,
    size BIGINT NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, path)
);

CREATE INDEX sessions_labels ON sessions (tenant, tool, label) WHERE label IS NOT NULL;

-- Incremented by each transaction that wrote.
CREATE TABLE edition (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    one BIGINT NOT NULL CHECK (one = 1),
    number BIGINT NOT NULL,
    PRIMARY KEY (tenant, one)
);

-- All versions of all documents of the vault. One without data is a removal.
CREATE TABLE document_versions (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    version BIGINT GENERATED BY DEFAULT AS IDENTITY,
    path TEXT COLLATE "C" NOT NULL,
    data BYTEA,
    written BIGINT NOT NULL,
    PRIMARY KEY (tenant, version)
);
CREATE INDEX document_versions_path ON document_versions (tenant, path, version);

-- The current version of each document.
CREATE TABLE documents (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    path TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (tenant, path),
    FOREIGN KEY (tenant, version) REFERENCES document_versions (tenant, version)
);

-- A home that was moved here partly. The id shows who may continue.
CREATE TABLE moves (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant)
);

-- The ledger by lines.
CREATE TABLE ledger_lines (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    number BIGINT GENERATED BY DEFAULT AS IDENTITY,
    hash BYTEA NOT NULL,
    line BYTEA NOT NULL,
    PRIMARY KEY (tenant, number),
    UNIQUE (tenant, hash)
);

-- Full text: the stems of a row as numbers unique to a tenant (64 bits of a hash), in numeric order.
CREATE TABLE words (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    kind TEXT COLLATE "C" NOT NULL,
    row BIGINT NOT NULL,
    keys BIGINT[] STORAGE EXTERNAL NOT NULL,
    counts REAL[] STORAGE EXTERNAL NOT NULL, -- occurrences of each, weighted over columns
    length INTEGER NOT NULL,                 -- number of words
    names BIGINT[] NOT NULL,                 -- rows of names
    PRIMARY KEY (tenant, kind, row)
) WITH (toast_tuple_target = 8160);          -- keeps a row within its page if it fits
CREATE INDEX words_keys ON words USING gin (keys);
CREATE INDEX words_names ON words USING gin (names) WHERE names <> '{}';

-- The number of rows of a kind that contain each stem.
CREATE TABLE terms (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    kind TEXT COLLATE "C" NOT NULL,
    key BIGINT NOT NULL,
    term TEXT COLLATE "C" NOT NULL,
    rows BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind, key)
);
CREATE INDEX terms_term ON terms (tenant, kind, term);

-- The numbers of rows and words of a kind.
CREATE TABLE word_totals (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    kind TEXT COLLATE "C" NOT NULL,
    rows BIGINT NOT NULL,
    words BIGINT NOT NULL,
    PRIMARY KEY (tenant, kind)
);

-- The number of occurrences of a stem in a row.
CREATE FUNCTION nacre.count_of(stem BIGINT, keys BIGINT[], counts REAL[]) RETURNS DOUBLE PRECISION
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN keys[width_bucket(stem, keys)] = stem THEN counts[width_bucket(stem, keys)] ELSE 0 END;

-- The sign bits of the passages in use. A tenant with very many may have its own graph (decision 25).
CREATE TABLE signs (
    tenant TEXT COLLATE "C" NOT NULL DEFAULT nacre.tenant(),
    passage BIGINT NOT NULL,
    bits BIT VARYING NOT NULL,
    PRIMARY KEY (tenant, passage)
);

CREATE FUNCTION settle_out_of_use() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = nacre_rows, nacre, pg_temp AS $$
BEGIN
    DELETE FROM co_recall WHERE tenant = new.tenant AND (a = new.id OR b = new.id);
    UPDATE review_queue SET status = 'resolved', resolved = coalesce(new.retired_at, new.updated)
    WHERE tenant = new.tenant AND memory = new.id AND status = 'pending';
    RETURN NULL;
END
$$;
CREATE TRIGGER memories_out_of_use AFTER INSERT ON memories FOR EACH ROW
WHEN (new.retired_at IS NOT NULL OR new.superseded_by IS NOT NULL) EXECUTE FUNCTION settle_out_of_use();

CREATE FUNCTION note_last_turn() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = nacre_rows, nacre, pg_temp AS $$
DECLARE
    last RECORD;
BEGIN
    FOR last IN SELECT g.tenant, max(g.row) AS row FROM gone g GROUP BY g.tenant LOOP
        INSERT INTO last_turns (tenant, row) VALUES (last.tenant, last.row)
        ON CONFLICT (tenant) DO UPDATE SET row = greatest(last_turns.row, excluded.row);
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER turns_deleted AFTER DELETE ON turns REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION note_last_turn();

CREATE FUNCTION drop_unused_file() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = nacre_rows, nacre, pg_temp AS $$
BEGIN
    DELETE FROM files f WHERE f.tenant = old.tenant AND f.row = old.file
        AND NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.tenant = old.tenant AND u.file = old.file);
    RETURN NULL;
END
$$;
CREATE TRIGGER file_uses_deleted AFTER DELETE ON file_uses FOR EACH ROW EXECUTE FUNCTION drop_unused_file();

CREATE FUNCTION keep_signs() RETURNS TRIGGER LANGUAGE plpgsql
SET search_path = nacre_rows, nacre, pg_catalog, pg_temp AS $$
DECLARE
    run BYTEA;
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (old.first, old.count) <> (new.first, new.count) THEN
        DELETE FROM signs WHERE tenant = old.tenant AND passage >= old.first AND passage < old.first + old.count;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        run := new.bits || ''::bytea; -- in memory, and not compressed
        INSERT INTO signs (tenant, passage, bits)
        SELECT new.tenant, new.first + n, ('x' || encode(substring(run FROM n * size + 1 FOR size), 'hex'))::bit varying
        FROM generate_series(0, new.count::integer - 1) AS n,
            (SELECT length(run) / nullif(new.count, 0)::integer AS size) AS one
        ON CONFLICT (tenant, passage) DO UPDATE SET bits = excluded.bits WHERE signs.bits <> excluded.bits;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER passage_bits_kept AFTER INSERT OR UPDATE OR DELETE ON passage_bits
FOR EACH ROW EXECUTE FUNCTION keep_signs();

-- Continue numbering after rows that arrived with numbers, for all tenants.
CREATE FUNCTION nacre.keep_rows_above(held TEXT, number BIGINT) RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    counter REGCLASS := (
        SELECT pg_get_serial_sequence(format('nacre_rows.%I', held), attname) FROM pg_attribute
        WHERE attrelid = to_regclass(format('nacre_rows.%I', held)) AND attidentity <> ''
    );
    present BIGINT;
BEGIN
    EXECUTE format('ALTER SEQUENCE %s INCREMENT 1', counter);
    EXECUTE format('SELECT last_value FROM %s', counter) INTO present;
    RETURN setval(counter, greatest(present, least(number, 1::bigint << 53)));
END
$$;

-- After many rows arrived at once: until it is analysed, the server plans as if the tables were empty.
CREATE FUNCTION nacre.look_at_rows() RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held NAME;
BEGIN
    FOR held IN SELECT relname FROM pg_class WHERE relnamespace = 'nacre_rows'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('ANALYZE nacre_rows.%I', held);
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION nacre.keep_rows_above, nacre.look_at_rows FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nacre.keep_rows_above, nacre.look_at_rows TO nacre_tenant;

-- Create each table's policy, and its view with the tenant as the last column.
DO $$
DECLARE
    held RECORD;
BEGIN
    FOR held IN
        SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'nacre_rows'::regnamespace AND c.relkind = 'r' AND c.relname <> 'schema_version'
            AND a.attname <> 'tenant'
        GROUP BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE nacre_rows.%1$I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', held.name);
        EXECUTE format('CREATE POLICY tenant ON nacre_rows.%1$I USING (tenant = nacre.tenant())', held.name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON nacre_rows.%1$I TO nacre_tenant', held.name);
        EXECUTE format(
            'CREATE VIEW nacre.%1$I WITH (security_invoker = true) AS
            SELECT %2$s, tenant FROM nacre_rows.%1$I WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION',
            held.name, held.columns
        );
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON nacre.%1$I TO nacre_tenant', held.name);
    END LOOP;
END
$$;

-- Row-level security prevents use of the inverted indexes of words, so a tenant reads with their owner's rights.
REVOKE ALL ON nacre_rows.words FROM nacre_tenant;
ALTER VIEW nacre.words RESET (security_invoker);
DO $$
BEGIN
    EXECUTE format(
        'CREATE POLICY read_by_view ON nacre_rows.words FOR SELECT TO %I USING (true)',
        (SELECT tableowner FROM pg_tables WHERE schemaname = 'nacre_rows' AND tablename = 'words')
    );
END
$$;

SET LOCAL search_path = nacre, public;

-- Words are always read through this view, even where nacre.words is not in the search path (decision 26).
CREATE VIEW word_rows WITH (security_invoker = true) AS SELECT * FROM words;

CREATE VIEW active_memories WITH (security_invoker = true) AS
    SELECT * FROM memories WHERE superseded_by IS NULL AND retired_at IS NULL;

CREATE VIEW past_memories WITH (security_invoker = true) AS
    SELECT * FROM memories WHERE retired_at IS NULL;

CREATE VIEW other_names WITH (security_invoker = true) AS
SELECT k.value AS name, p.slug FROM project_keys k JOIN projects p ON p.id = k.project
WHERE k.key = 'alias' AND k.value NOT IN (SELECT slug FROM projects);

CREATE VIEW last_uses WITH (security_invoker = true) AS
SELECT m.row, m.id, m.kind, m.subject, m.importance, m.expiry, m.expires_on,
    coalesce(u.recall_count, 0) AS recall_count,
    greatest(
        m.created, m.updated, u.last_recalled, (SELECT max(c.at) FROM confirmations c WHERE c.memory = m.id)
    ) AS last_used
FROM active_memories m LEFT JOIN usage u ON u.memory = m.id;

GRANT USAGE ON SCHEMA nacre TO nacre_tenant;
GRANT USAGE ON SCHEMA nacre_rows TO PUBLIC; -- the version is read before the role becomes nacre_tenant
GRANT SELECT ON nacre_rows.schema_version TO PUBLIC;
GRANT SELECT ON active_memories, past_memories, other_names, last_uses, word_rows TO nacre_tenant;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA nacre_rows TO nacre_tenant;

-- Spaces are tenants with a kind, members and a rule. A tenant sees these tables only through the functions below.
CREATE SCHEMA nacre_spaces;
REVOKE ALL ON SCHEMA nacre_spaces FROM PUBLIC;

CREATE TABLE nacre_spaces.accounts (
    name TEXT COLLATE "C" PRIMARY KEY,
    created BIGINT NOT NULL
);

-- raising: who may share their own memories into it.
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

-- Hashes of keys, never the keys. role: the highest role of the holder.
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

-- The last line of the audit log that workers of a cluster processed for a space, in place of a daemon.
CREATE TABLE nacre_spaces.tended (
    space TEXT COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL
);

-- Quotas of a space. NULL means unlimited.
CREATE TABLE nacre_spaces.quotas (
    space TEXT COLLATE "C" PRIMARY KEY,
    calls BIGINT,
    turns BIGINT,
    usd DOUBLE PRECISION
);

-- Calls with keys to a space with such a quota by day (UTC, like 2026-01-31), of all processes that answer.
CREATE TABLE nacre_spaces.calls (
    space TEXT COLLATE "C" NOT NULL,
    day TEXT COLLATE "C" NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (space, day)
);

CREATE FUNCTION nacre_spaces.refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is appended to alone' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON nacre_spaces.audit_log
FOR EACH STATEMENT EXECUTE FUNCTION nacre_spaces.refuse();

-- The role of an account in the tenant's space, and the space's rule. No row if it does not belong to the space.
CREATE FUNCTION nacre_spaces.standing(who TEXT, OUT role TEXT, OUT kind TEXT, OUT raising TEXT)
RETURNS SETOF RECORD LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.role, s.kind, s.raising FROM nacre_spaces.spaces s JOIN nacre_spaces.members m ON m.space = s.name
    WHERE s.name = nacre.tenant() AND m.account = who
    UNION ALL
    SELECT 'owner', NULL, NULL WHERE who = nacre.tenant()
        AND NOT EXISTS (SELECT 1 FROM nacre_spaces.spaces s WHERE s.name = nacre.tenant())
$$;

-- The spaces of an account that belongs to the tenant's space.
CREATE FUNCTION nacre_spaces.spaces_of(who TEXT, OUT name TEXT, OUT kind TEXT, OUT raising TEXT, OUT role TEXT)
RETURNS SETOF RECORD LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.name, s.kind, s.raising, m.role FROM nacre_spaces.spaces s JOIN nacre_spaces.members m ON m.space = s.name
    WHERE m.account = who AND EXISTS (SELECT 1 FROM nacre_spaces.standing(who)) ORDER BY s.kind, s.name
$$;

-- A tenant that is not a space has no log.
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
