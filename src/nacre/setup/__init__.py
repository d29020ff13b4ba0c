"""First steps: quickstart, models, credentials, examples."""
