"""Gradient-based inference over outputs."""
