"""Work that hooks leave for later."""
