"""Word vectors and clusters from files."""
