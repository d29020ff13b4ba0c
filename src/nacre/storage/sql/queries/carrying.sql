-- attach_earlier --
-- The database that was, beside the one that takes its place.
ATTACH :path AS earlier;

-- detach_earlier --
DETACH earlier;

-- carry_model_calls --
INSERT OR IGNORE INTO main.model_calls SELECT * FROM earlier.model_calls;

-- carry_model_refusals --
INSERT OR IGNORE INTO main.model_refusals SELECT * FROM earlier.model_refusals;

-- carry_model_health --
INSERT OR IGNORE INTO main.model_health SELECT * FROM earlier.model_health;

-- carry_model_answers --
INSERT OR IGNORE INTO main.model_answers SELECT * FROM earlier.model_answers;

-- carry_traces --
INSERT OR IGNORE INTO main.traces SELECT * FROM earlier.traces;
