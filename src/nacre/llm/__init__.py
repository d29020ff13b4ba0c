"""Language models: providers, what they can do, and what is wrapped around them."""
