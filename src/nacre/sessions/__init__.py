"""Sessions: list, show, search and summarise them, with changes and error fixes."""
