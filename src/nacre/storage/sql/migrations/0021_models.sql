-- State: what language models were asked and what that cost, how they fare, what they answered, and traces of runs.

-- A call is noted before it is made, at what it may cost at most, so that calls side by side keep within a budget. Costs
-- are millionths of a US dollar, and missing where the price is not known. The day is that of the owner's clock.
CREATE TABLE model_calls (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    day TEXT NOT NULL,
    task TEXT NOT NULL,
    model TEXT NOT NULL,
    background INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    written INTEGER NOT NULL,
    cost INTEGER,
    seconds REAL NOT NULL,
    outcome TEXT NOT NULL,
    trace TEXT
) STRICT;
CREATE INDEX model_calls_day ON model_calls (day);

-- Calls that were not made.
CREATE TABLE model_refusals (
    day TEXT NOT NULL,
    task TEXT NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (day, task, model, reason)
) STRICT, WITHOUT ROWID;

-- Models that failed, so often in a row; in the background they are left alone until then.
CREATE TABLE model_health (
    model TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    until INTEGER NOT NULL,
    told TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was answered to a prompt; the key is a hash of model and prompt.
CREATE TABLE model_answers (
    key TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    answer TEXT NOT NULL
) STRICT;
CREATE INDEX model_answers_at ON model_answers (at);

-- Runs of models, and questions that were answered; steps are a JSON array.
CREATE TABLE traces (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    session TEXT,
    began INTEGER NOT NULL,
    seconds REAL NOT NULL,
    outcome TEXT NOT NULL,
    steps TEXT NOT NULL
) STRICT;
CREATE INDEX traces_began ON traces (began);
CREATE INDEX traces_session ON traces (session) WHERE session IS NOT NULL;
