"""The thin way to the daemon: standard library only, for processes that live for milliseconds."""
