"""Work on the database as a whole: what is erased, cleaned, proved, and carried over into another one."""
