"""The vault as a git repository, through the ``git`` program. It knows nothing of memories."""
