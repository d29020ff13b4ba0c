"""Keep the vault in step with a remote."""
