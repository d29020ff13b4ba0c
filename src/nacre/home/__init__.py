"""An open home: its stores, locks, projects, archive, budgets and file writes."""
