"""Output spaces: the sets in which outputs live."""

from spen_plugins.spaces.base import OutputSpace
from spen_plugins.spaces.labels import LabelSet
from spen_plugins.spaces.sparse_labels import SparseLabels
from spen_plugins.spaces.tags import TagSequence, allowed_transitions, bio_transitions, viterbi

__all__ = [
    "LabelSet",
    "OutputSpace",
    "SparseLabels",
    "TagSequence",
    "allowed_transitions",
    "bio_transitions",
    "viterbi",
]
