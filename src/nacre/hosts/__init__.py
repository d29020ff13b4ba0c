"""Agent tools that nacre plugs into: what is written where, and how it is taken out again."""
