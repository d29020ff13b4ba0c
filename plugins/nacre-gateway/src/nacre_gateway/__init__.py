"""The gateway: conversations in chat channels, answered by an agent with memory."""
