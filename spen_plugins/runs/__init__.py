"""Runs: training from a config, run folders, and predictions of finished runs."""
