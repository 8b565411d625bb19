"""Tasks whose outputs are label sets."""
