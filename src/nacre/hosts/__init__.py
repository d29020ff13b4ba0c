"""Connection of agent tools (hosts) to nacre, and its removal."""
