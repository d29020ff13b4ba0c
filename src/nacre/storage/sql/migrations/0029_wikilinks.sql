-- Index: what memories are called, and what their bodies call others: [[name]].
CREATE TABLE memory_names (
    name TEXT NOT NULL,
    memory TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    written TEXT NOT NULL,
    is_alias INTEGER NOT NULL,
    PRIMARY KEY (name, memory)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_names_memory ON memory_names (memory);

CREATE TABLE mentions (
    source TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (source, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_name ON mentions (name);

INSERT OR IGNORE INTO memory_names (name, memory, written, is_alias)
SELECT one.value ->> 0, m.id, one.value ->> 1, one.value ->> 2
FROM memories m LEFT JOIN vault_files f ON f.memory = m.id, json_each(called(m.subject, f.path, m.extra)) one;

INSERT OR IGNORE INTO mentions (source, name)
SELECT m.id, one.value FROM memories m, json_each(mentioned(m.content)) one WHERE instr(m.content, '[[');

INSERT INTO links (source, rel, target, origin)
SELECT source, 'related_to', target, 'body'
FROM (
    SELECT m.source, m.name, t.id AS target, rank() OVER (
        PARTITION BY m.source, m.name
        ORDER BY t.superseded_by IS NOT NULL,
            s.trust = 'trusted' AND NOT s.proposed AND (t.trust <> 'trusted' OR t.proposed),
            n.is_alias,
            CASE WHEN t.project IS s.project THEN 0 WHEN t.project IS NULL THEN 1 ELSE 2 END
    ) AS place
    FROM mentions m
    JOIN memories s ON s.id = m.source
    JOIN memory_names n ON n.name = m.name
    JOIN memories t ON t.id = n.memory
    WHERE t.id <> m.source AND t.retired_at IS NULL
) AS mentioned
WHERE place = 1
GROUP BY source, name HAVING count(*) = 1 AND NOT EXISTS (
    SELECT 1 FROM links l WHERE l.source = mentioned.source AND l.target = mentioned.target AND l.origin = 'manual'
)
ON CONFLICT (source, rel, target) DO UPDATE SET origin = 'body' WHERE origin = 'auto';
