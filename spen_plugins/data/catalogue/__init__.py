"""The catalogue of data sets, and the paths of data files."""

from spen_plugins.data.catalogue.catalogue import DataSet, catalogue
from spen_plugins.data.catalogue.places import cache_folder, locate

__all__ = ["DataSet", "cache_folder", "catalogue", "locate"]
