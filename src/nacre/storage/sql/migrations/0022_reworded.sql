-- Whether a memory that waits got other words since its claim was told: then that is told anew.
ALTER TABLE claims_waiting ADD COLUMN reworded INTEGER NOT NULL DEFAULT 0;
