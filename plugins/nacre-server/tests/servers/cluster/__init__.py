"""Processes of a cluster, started as an operator starts them, on a real server."""
