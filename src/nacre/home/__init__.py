"""An open home: its stores, its lock, its projects, and how its files are written."""
