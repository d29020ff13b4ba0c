"""What an agent is given unasked: at a session's start, with a prompt, and at a handoff."""
