"""What exists in nacre: frozen values without behaviour beyond their own consistency. Standard library only."""
