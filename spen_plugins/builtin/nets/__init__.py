"""Inference nets of the core."""
