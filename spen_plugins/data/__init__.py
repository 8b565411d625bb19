"""Data files: text and its encodings, formats recognised by content.

Readers raise a DataError with file, line, what was found and what was expected; a ConfigError is for settings.
"""
