"""Tasks of the core."""
