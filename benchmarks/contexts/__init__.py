"""Whether agents are given what a prompt needs."""
