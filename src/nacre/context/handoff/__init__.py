"""What a session hands over to the next one: by rules at once, and better by a model. Pure functions."""
