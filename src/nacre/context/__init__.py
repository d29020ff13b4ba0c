"""Context for agents at session starts and prompts, and handoffs between sessions."""
