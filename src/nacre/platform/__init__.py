"""What nacre needs of the machine: locks, private files, processes, the environment, ids."""
