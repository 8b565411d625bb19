"""Runs: training from a config, run folders, and finished runs that predict."""
