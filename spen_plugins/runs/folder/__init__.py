"""Run folders: what a run leaves, and all that prediction needs."""
