"""Training examples that stay on disk: shards, indexes, and their caches."""
