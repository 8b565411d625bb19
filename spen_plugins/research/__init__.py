"""Tools for finished runs and sweeps: compare, sweep, plot, report."""
