"""Tests that start the processes of a cluster on a real server, as an operator does."""
