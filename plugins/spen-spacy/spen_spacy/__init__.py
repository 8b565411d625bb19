"""spaCy components whose models are runs of spen-plugins."""

from __future__ import annotations

from spen_spacy.drawing import draw
from spen_spacy.extensions import Argument, Frame, set_extensions

__all__ = ["Argument", "Frame", "draw", "set_extensions"]
