"""How each language writes names, bases, imports and types. What captures what is in the ``.scm`` files beside."""
