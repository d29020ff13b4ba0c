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
