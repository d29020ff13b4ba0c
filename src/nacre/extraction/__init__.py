"""Sessions into candidate memories: by rules, and by a language model."""
