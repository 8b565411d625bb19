"""Parts of the data: training, validation and test, from files or given in Python."""
