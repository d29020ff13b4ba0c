-- From that day on recall and context leave a memory out.
ALTER TABLE memories ADD COLUMN expires_on TEXT;
