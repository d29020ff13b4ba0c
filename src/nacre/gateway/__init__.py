"""The gateway: messages of channels become conversations, and each is answered by an agent that remembers."""
