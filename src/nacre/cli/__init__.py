"""The command line. Each command parses, calls one function of the service layer, and renders the result."""
