"""The service layer: everything nacre does, once. Faces call it and render what it returns."""
