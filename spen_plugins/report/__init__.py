"""Reports on finished runs: comparisons, tables, figures, HTML."""
