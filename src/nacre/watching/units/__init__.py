"""How each system starts the watcher: texts with places for the program, its environment and its label."""
