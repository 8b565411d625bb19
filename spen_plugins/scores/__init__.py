"""Scores and calibration."""
