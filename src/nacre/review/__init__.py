"""Review, judgement and consolidation of memories."""
