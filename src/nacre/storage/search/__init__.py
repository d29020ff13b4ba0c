"""Full text and vectors."""
