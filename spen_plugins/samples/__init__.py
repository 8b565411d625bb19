"""Sample corpora made by code: synthetic, deterministic, without files or network."""
