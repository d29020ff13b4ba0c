-- Values that channels keep between runs, such as offsets and sessions to resume.
CREATE TABLE channel_state (
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (channel, name)
) STRICT, WITHOUT ROWID;

-- Conversations. Each key has one open session; the earlier ones are closed.
CREATE TABLE chat_sessions (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,             -- JSON of values.gateway.message.Chat
    name TEXT NOT NULL,             -- the person or group, for display
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,      -- number of searchable messages
    compactions INTEGER NOT NULL DEFAULT 0,
    flushed INTEGER NOT NULL DEFAULT -1,     -- compaction cycle of the last flush
    tokens INTEGER NOT NULL DEFAULT 0,       -- since the last compaction
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0,         -- millionths of a US dollar
    closed INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX chat_sessions_open ON chat_sessions (key) WHERE closed IS NULL;
CREATE INDEX chat_sessions_updated ON chat_sessions (updated);

-- Received messages. heard: in a group, not to the agent; waiting: to be answered; taken: being answered.
CREATE TABLE inbound (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    sender TEXT NOT NULL,
    message TEXT NOT NULL,          -- JSON of values.gateway.message.Incoming; empty when answered
    is_owner INTEGER NOT NULL,
    received INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('heard', 'waiting', 'taken', 'done', 'refused')),
    line TEXT,                      -- id of its line in the transcript
    attempts INTEGER NOT NULL DEFAULT 0,
    UNIQUE (channel, id)
) STRICT;
CREATE INDEX inbound_open ON inbound (key, seq) WHERE state IN ('heard', 'waiting', 'taken');
CREATE INDEX inbound_received ON inbound (received);

-- Parts of answers to send.
CREATE TABLE outbound (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,
    channel TEXT NOT NULL,
    message TEXT NOT NULL,          -- JSON of values.gateway.message.Outgoing; empty when sent
    created INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'sent', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL DEFAULT 0,
    sent TEXT,                      -- the platform's id of the message
    problem TEXT,
    may_be_doubled INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbound_open ON outbound (key, seq) WHERE state IN ('waiting', 'sending');
CREATE INDEX outbound_created ON outbound (created);

-- Transcript lines that are not in their files yet.
CREATE TABLE pending_lines (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    line TEXT NOT NULL
) STRICT;
CREATE INDEX pending_lines_session ON pending_lines (session, seq);

-- Senders who requested or have access.
CREATE TABLE pairings (
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    name TEXT NOT NULL,
    code TEXT NOT NULL UNIQUE,
    asked INTEGER NOT NULL,
    approved INTEGER,
    PRIMARY KEY (channel, sender)
) STRICT, WITHOUT ROWID;
