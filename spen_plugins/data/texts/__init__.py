"""Texts with labels: CSV, TSV, JSON lines, fastText, Reuters; words of a text."""
