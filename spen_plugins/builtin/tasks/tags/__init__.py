"""Tasks whose outputs are tags of words."""
