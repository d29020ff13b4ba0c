"""What repositories' code consists of: symbols, who calls, imports and inherits what, and the memories that name it."""
