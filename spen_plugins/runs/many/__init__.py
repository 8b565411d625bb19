"""Several runs: seeds, methods, sweeps, and several tasks at once."""
