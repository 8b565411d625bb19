"""Output spaces: the sets in which outputs live."""

from spen_plugins.spaces.bags import LabelBags
from spen_plugins.spaces.base import OutputSpace
from spen_plugins.spaces.labels import LabelSet
from spen_plugins.spaces.tags import TagSequence, allowed_transitions, bio_transitions, viterbi

__all__ = [
    "LabelBags",
    "LabelSet",
    "OutputSpace",
    "TagSequence",
    "allowed_transitions",
    "bio_transitions",
    "viterbi",
]
