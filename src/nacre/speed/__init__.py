"""How fast nacre is on a machine: reading, recall, contexts, starts."""
