"""`spen_parser`: the constituents of sentences."""
