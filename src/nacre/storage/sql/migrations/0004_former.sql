-- What was replaced is looked up at every recall: its words still lead to what took its place.
CREATE INDEX memories_superseded_by ON memories (superseded_by) WHERE superseded_by IS NOT NULL;
