"""Run folders: the results of a run, and everything that prediction needs."""
