"""Commands about memories: recall, store, list, retire, review, history and more."""
