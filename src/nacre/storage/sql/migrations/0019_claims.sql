-- Index: what each memory claims; front matter is the truth.
CREATE TABLE claims (
    memory TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    entity TEXT NOT NULL,
    attribute TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    confidence REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_entity ON claims (entity, attribute);
CREATE INDEX claims_attribute ON claims (attribute);

-- Claims that were in files before the index knew of them.
INSERT INTO claims (memory, entity, attribute, predicate, object, confidence)
SELECT id, trim(json_extract(extra, '$.claim.entity')), trim(json_extract(extra, '$.claim.attribute')),
    trim(coalesce(json_extract(extra, '$.claim.predicate'), '')), trim(json_extract(extra, '$.claim.object')), 0.5
FROM memories
WHERE json_type(extra, '$.claim.entity') = 'text' AND json_type(extra, '$.claim.attribute') = 'text'
    AND json_type(extra, '$.claim.object') = 'text';
UPDATE memories SET extra = json_remove(extra, '$.claim') WHERE id IN (SELECT memory FROM claims);

-- State: memories whose claim a model is still to tell, and which it is then to judge against others.
-- ``due`` is a time (epoch milliseconds), ``note`` says why the last try failed.
CREATE TABLE claims_waiting (
    memory TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    due INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    note TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_waiting_due ON claims_waiting (due);

-- State: memories of which a model said that they claim nothing.
CREATE TABLE claimless (
    memory TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- State: how a model judged a pair that waits for a person; what it said of it is the reason of a link in front matter.
CREATE TABLE conflicts (
    older TEXT NOT NULL,
    newer TEXT NOT NULL,
    relation TEXT NOT NULL,
    confidence REAL NOT NULL,
    model TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (older, newer)
) STRICT, WITHOUT ROWID;
