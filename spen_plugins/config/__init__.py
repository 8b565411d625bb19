"""Configs: files, dotted overrides, typed tables, and the experiment they describe."""
