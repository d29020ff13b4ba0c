"""One file for each group of commands; a file is loaded when one of its commands runs."""
