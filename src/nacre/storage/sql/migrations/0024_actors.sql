-- Through which face an operation was asked, and by which agent.
ALTER TABLE operations ADD COLUMN actor TEXT;
