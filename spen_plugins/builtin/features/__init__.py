"""Feature networks of the core."""
