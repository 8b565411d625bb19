"""Data sets: where they lie, where they come from, how they are split."""

from spen_plugins.datasets.places import cache_folder, locate

__all__ = ["cache_folder", "locate"]
