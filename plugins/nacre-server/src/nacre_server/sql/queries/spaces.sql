-- read_standing --
-- No row if the account does not belong to the space.
SELECT role, kind, raising FROM nacre_spaces.standing(CAST(:account AS text))

-- list_spaces --
SELECT name, kind, raising, role FROM nacre_spaces.spaces_of(CAST(:account AS text))

-- note_in_audit_log --
SELECT nacre_spaces.note(CAST(:account AS text), CAST(:action AS text), CAST(:subject AS text), CAST(:outcome AS text))

-- list_audit_log --
-- Newest first.
SELECT at, account, action, subject, outcome FROM nacre_spaces.noted(CAST(:most AS bigint))
