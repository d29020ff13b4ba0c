"""Commands about the home: how it is set up, filled, checked, backed up and kept in step."""
