-- No model judges stored memories in the background.
DROP TABLE claims_waiting;
DROP TABLE conflicts;
DROP TABLE claims;
