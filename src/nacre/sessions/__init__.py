"""Sessions: list, show, search, summarise; what agents changed and what mended errors."""
