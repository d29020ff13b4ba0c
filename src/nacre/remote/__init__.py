"""One memory on a server, and machines that hold a copy of it: documents go both ways, turns go there."""
