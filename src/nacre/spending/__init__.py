"""What language models may cost, which of them does what, and traces of what they did."""
