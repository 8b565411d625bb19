"""Energy losses of the core."""
