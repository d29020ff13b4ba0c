-- A link states its strength or has the usual one, .5. Until now links that somebody made had 1, and recall halved it.
CREATE TABLE links_new (
    source TEXT NOT NULL,
    rel TEXT NOT NULL,
    target TEXT NOT NULL,
    origin TEXT NOT NULL DEFAULT 'manual',
    strength REAL,
    valid_since TEXT,
    valid_until TEXT,
    reason TEXT,
    PRIMARY KEY (source, rel, target)
) STRICT, WITHOUT ROWID;
INSERT INTO links_new (source, rel, target, origin, strength, reason)
SELECT source, rel, target, origin, CASE WHEN origin = 'auto' THEN strength END, reason FROM links;
DROP TABLE links;
ALTER TABLE links_new RENAME TO links;
CREATE INDEX links_target ON links (target);
CREATE INDEX links_origin ON links (origin);
