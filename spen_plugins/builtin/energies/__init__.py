"""Energies of the core."""
