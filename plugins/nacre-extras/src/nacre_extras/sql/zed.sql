-- zed_threads --
-- All threads, with a mark that changes when a thread is saved.
SELECT id, updated_at, octet_length(data) FROM threads ORDER BY rowid;

-- zed_thread --
-- A thread. Columns differ between versions.
SELECT * FROM threads WHERE id = :name;
