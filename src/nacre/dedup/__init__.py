"""What is said again, and what replaces what: pure functions over two statements."""
