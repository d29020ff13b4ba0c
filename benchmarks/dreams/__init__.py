"""What a dream makes of a year of memories."""
