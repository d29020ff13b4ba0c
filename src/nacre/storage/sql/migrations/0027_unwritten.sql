-- Sessions that a writer is to be shown once they are over: from which turn on, and when it was asked last.
ALTER TABLE sessions ADD COLUMN unwritten INTEGER;
ALTER TABLE sessions ADD COLUMN asked INTEGER;
