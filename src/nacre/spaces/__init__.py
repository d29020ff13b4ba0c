"""Whose memory it is: spaces of persons, teams and organisations on a server, roles in them, keys to them."""
