-- Homes that have memories that rules wrote: those that nobody used, and no rule of today would write, become candidates.
INSERT INTO usage_values (key, value)
SELECT 'older_rules', 'due' WHERE EXISTS (SELECT 1 FROM memories WHERE confidence = 'inferred');
