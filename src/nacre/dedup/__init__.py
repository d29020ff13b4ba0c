"""What is said again and what replaces what: comparing statements, and placing a new memory."""
