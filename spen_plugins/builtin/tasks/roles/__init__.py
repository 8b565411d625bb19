"""Tasks whose outputs are semantic roles."""
