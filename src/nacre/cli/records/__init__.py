"""What ``--json`` answers: the field names are a promise.

Sessions and turns carry the ids of their tool; ``session`` is nacre's own, ``<tool>:<id>``. Times are ISO 8601, UTC.
"""
