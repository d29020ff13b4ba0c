"""Commands that keep running: the daemon, the watcher, the server for agents."""
