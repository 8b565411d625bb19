"""Predictions and evaluations of finished runs."""
