"""spaCy components whose models are runs of spen-plugins."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from spen_plugins import Functions, hookimpl

if TYPE_CHECKING:
    from spen_spacy.displaying import DISPLACY_OPTIONS, displacy_frames
    from spen_spacy.drawing import draw
    from spen_spacy.extensions import set_extensions
    from spen_spacy.frame import Argument, Frame
    from spen_spacy.serialising import to_json

__all__ = ["DISPLACY_OPTIONS", "Argument", "Frame", "displacy_frames", "draw", "set_extensions", "to_json"]

_WHERE = {
    "DISPLACY_OPTIONS": "displaying",
    "Argument": "frame",
    "Frame": "frame",
    "displacy_frames": "displaying",
    "draw": "drawing",
    "set_extensions": "extensions",
    "to_json": "serialising",
}


@hookimpl
def spen_command() -> Functions:
    return {"annotate": "spen_spacy.annotate.command:annotate", "package": "spen_spacy.packaging.command:package"}


def __getattr__(name: str) -> Any:
    """Names, imported at first use: `spen --help` imports this module and must not import spaCy."""
    if name not in _WHERE:
        raise AttributeError(f"module 'spen_spacy' has no attribute {name!r}")
    return getattr(importlib.import_module(f"spen_spacy.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_WHERE]
