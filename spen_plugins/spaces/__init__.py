"""Output spaces, and distributions over outputs."""

from spen_plugins.spaces.base import OutputSpace
from spen_plugins.spaces.distribution import Proposal
from spen_plugins.spaces.grids import BinaryGrid, IndependentPixels, IndependentReals, RealGrid
from spen_plugins.spaces.labels import DependentLabels, IndependentLabels, LabelSet
from spen_plugins.spaces.mixture import Mixture
from spen_plugins.spaces.paths import viterbi
from spen_plugins.spaces.schemes import allowed_transitions
from spen_plugins.spaces.spans import Spans
from spen_plugins.spaces.sparse import SparseLabels
from spen_plugins.spaces.tags import DependentTags, IndependentTags, TagSequence
