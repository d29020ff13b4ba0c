"""Leave with everything, and come from elsewhere: export, import, backup."""
