"""Synthetic sample corpora, which need neither downloads nor network."""
