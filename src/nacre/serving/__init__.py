"""How nacre listens to HTTP: where, with how many connections, and who is refused."""
