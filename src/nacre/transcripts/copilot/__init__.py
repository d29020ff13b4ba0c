"""GitHub Copilot: the command line, and the chat of VS Code."""
