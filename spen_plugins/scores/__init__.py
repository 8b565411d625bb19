"""Scores, each computed in Python from its published definition."""
