"""Numbers of a day or of a longer period."""
