"""PostgreSQL, the engine of a memory that many machines share."""
