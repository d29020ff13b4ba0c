-- No model judges stored memories in the background.
DROP VIEW nacre.claims_waiting;
DROP TABLE nacre_rows.claims_waiting;
DROP VIEW nacre.conflicts;
DROP TABLE nacre_rows.conflicts;
DROP VIEW nacre.claims;
DROP TABLE nacre_rows.claims;
