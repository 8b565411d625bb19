"""Embedded sample corpora: synthetic, made by code, the same at every call."""
