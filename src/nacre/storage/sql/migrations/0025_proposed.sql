-- Stored by an agent, neither said nor kept by the owner.
ALTER TABLE memories ADD COLUMN proposed INTEGER NOT NULL DEFAULT 0;
