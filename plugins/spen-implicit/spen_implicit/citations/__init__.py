"""Citations: task `citations`, its reader, its rules and the search for fields under them, and synthetic ones."""
