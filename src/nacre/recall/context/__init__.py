"""What an agent is given unasked: what a prompt is worth, what goes in, how it is framed. Pure functions."""
