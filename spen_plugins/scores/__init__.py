"""Scores as the fields define them."""
