"""Setup: quickstart, models, credentials, writer, examples and chores."""
