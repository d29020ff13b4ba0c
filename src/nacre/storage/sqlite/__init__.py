"""The database itself: connections, migrations, named queries."""
