"""What a researcher does with finished runs: compare, sweep, plot, report."""
