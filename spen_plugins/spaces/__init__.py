"""Output spaces, and distributions over outputs."""

from spen_plugins.spaces.base import OutputSpace
from spen_plugins.spaces.binary import BinaryGrid, IndependentPixels
from spen_plugins.spaces.distribution import Proposal
from spen_plugins.spaces.labels import IndependentLabels, LabelSet
from spen_plugins.spaces.paths import viterbi
from spen_plugins.spaces.reals import IndependentReals, RealGrid
from spen_plugins.spaces.schemes import allowed_transitions
from spen_plugins.spaces.sparse_labels import SparseLabels
from spen_plugins.spaces.tags import IndependentTags, TagSequence

__all__ = [
    "BinaryGrid",
    "IndependentLabels",
    "IndependentPixels",
    "IndependentReals",
    "IndependentTags",
    "LabelSet",
    "OutputSpace",
    "Proposal",
    "RealGrid",
    "SparseLabels",
    "TagSequence",
    "allowed_transitions",
    "viterbi",
]
