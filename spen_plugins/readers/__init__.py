"""Readers of file formats. Each says of a bad file: file, line, what was found, what was expected."""
