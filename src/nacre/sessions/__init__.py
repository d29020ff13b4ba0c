"""Listing, showing, searching and summarising sessions, and finding their changes and error fixes."""
