"""Extraction with a language model: what it is shown, what it is asked, and what of its answer is taken."""
