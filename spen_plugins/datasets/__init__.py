"""Data sets: paths, downloads and splits."""

from spen_plugins.datasets.catalogue import DataSet, catalogue
from spen_plugins.datasets.fetch import get
from spen_plugins.datasets.places import cache_folder, locate
from spen_plugins.datasets.split import split_file
from spen_plugins.datasets.stratification import stratify

__all__ = ["DataSet", "cache_folder", "catalogue", "get", "locate", "split_file", "stratify"]
