"""A small English pipeline: `spacy.load("spen_en")`.

It predicts parts of speech (`token.pos_`, `token.tag_`), names (`doc.ents`), and predicates with their arguments
(`doc._.srl`), each with a calibrated probability; `python -m spen_en TEXT` shows them. spaCy's own components add
sentences, lemmas and features of words.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins import Functions, hookimpl

if TYPE_CHECKING:
    from spacy.language import Language

__version__ = "0.9.0"

PIPELINE = Path(__file__).parent / "pipeline"


def load(**overrides: Any) -> Language:
    """Loads the pipeline with the arguments of `spacy.load`, which calls this function."""
    from spacy.util import load_model_from_path

    return load_model_from_path(PIPELINE, **overrides)


def spen_ner() -> Path:
    """The folder of the named-entity component, for `nlp.add_pipe("spen_ner")` in any pipeline."""
    return PIPELINE / "spen_ner"


def spen_pos() -> Path:
    """The folder of the part-of-speech tagger."""
    return PIPELINE / "spen_pos"


def spen_srl() -> Path:
    """The folder of the semantic role labeller and its predicate tagger."""
    return PIPELINE / "spen_srl"


@hookimpl
def spen_model() -> Functions:
    return {"spen_ner": spen_ner, "spen_pos": spen_pos, "spen_srl": spen_srl}
