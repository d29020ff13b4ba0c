"""What a question asks for: words, names, people, time."""
