"""The command line: parse, call one function of the service layer, render. Nothing is decided here."""
