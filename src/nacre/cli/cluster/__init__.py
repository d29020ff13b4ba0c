"""Commands of a cluster: its schema, its tenants, its processes."""
