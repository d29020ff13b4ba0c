"""Values of the gateway: messages, conversations, answers."""
