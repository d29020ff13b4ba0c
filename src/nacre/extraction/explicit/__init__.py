"""What the owner said so plainly that it is a memory at once."""
