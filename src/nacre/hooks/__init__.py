"""What hosts run as their hooks: a short process that asks the daemon, or looks by itself, and never hurts its host."""
