"""Single memories: store, edit, retire, scan, usage."""
