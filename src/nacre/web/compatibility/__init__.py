"""Routes of other memory systems, each in a module of its own: their clients ask, the operations answer."""
