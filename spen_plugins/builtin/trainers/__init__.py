"""Trainers of the core."""
