"""Downloads of the data sets in the catalogue."""
