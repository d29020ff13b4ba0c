"""An open home: stores, locks, projects, archive, budgets and writing of files."""
