"""A small English pipeline: `spacy.load("spen_en")`.

Parts of speech (`token.pos_`, `token.tag_`), names (`doc.ents`), predicates and their arguments (`doc._.srl`), each
with a calibrated probability; sentences, lemmas and features of words by spaCy's own components.
`python -m spen_en TEXT` shows the former.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins import Functions, hookimpl

if TYPE_CHECKING:
    from spacy.language import Language

__version__ = "0.4.0"

PIPELINE = Path(__file__).parent / "pipeline"


def load(**overrides: Any) -> Language:
    """The pipeline, as `spacy.load` calls it, with the arguments of `spacy.load`."""
    from spacy.util import load_model_from_path

    return load_model_from_path(PIPELINE, **overrides)


@hookimpl
def spen_model() -> Functions:
    # For `nlp.add_pipe("spen_ner")` and so on, without a model, in any pipeline.
    return {name: partial(PIPELINE.joinpath, name) for name in ("spen_ner", "spen_pos", "spen_srl")}
