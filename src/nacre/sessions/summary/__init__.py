"""A session in brief, without a model: what was asked, what was done, how it ended, what was left. Pure functions."""
