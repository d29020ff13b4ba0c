-- Homes in which handoffs were memories: those that wait become files of their own.
INSERT INTO usage_values (key, value)
SELECT 'handoffs', 'due' WHERE EXISTS (SELECT 1 FROM tags WHERE tag = 'handoff');
