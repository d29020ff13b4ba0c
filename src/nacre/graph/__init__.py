"""How memories are linked: links drawn and ended by hand, followed from one memory, and measured over all of them."""
