"""spaCy components whose models are runs of spen-plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins import Functions, hookimpl, lazy_names

if TYPE_CHECKING:
    from spen_spacy.drawing.displacy import DISPLACY_OPTIONS, displacy_frames
    from spen_spacy.drawing.svg import draw
    from spen_spacy.extensions import set_extensions
    from spen_spacy.frame import Argument, Frame
    from spen_spacy.serialising import to_json

# `spen --help` imports this module and must not import spaCy.
__getattr__, __all__ = lazy_names(globals())


@hookimpl
def spen_command() -> Functions:
    return {"annotate": "spen_spacy.annotate.command:annotate", "package": "spen_spacy.packaging.command:package"}
