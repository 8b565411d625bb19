"""Readers of file formats. Errors name the file, the line, what was found and what was expected."""
