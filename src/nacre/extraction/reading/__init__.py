"""How a session is read: what was typed, asked, answered and reported."""
