"""Constituency parsing (Tu, Pang & Gimpel 2020, A.1)."""
