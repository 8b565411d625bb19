"""Data files: text and its encodings, formats recognised by content. Errors name the file and the line."""
