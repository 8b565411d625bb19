"""An English pipeline over one pretrained encoder: `spacy.load("spen_en_md")`.

Nets that share one MiniLM predict parts of speech (`token.pos_`, `token.tag_`), names (`doc.ents`), and predicates
with their senses and arguments (`doc._.srl`), each with a calibrated probability. spaCy's own components add sentences,
lemmas and features of words.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins import Functions, hookimpl

if TYPE_CHECKING:
    from spacy.language import Language

__version__ = "0.6.0"

PIPELINE = Path(__file__).parent / "pipeline"


def load(**overrides: Any) -> Language:
    """Loads the pipeline with the arguments of `spacy.load`, which calls this function."""
    from spacy.util import load_model_from_path

    return load_model_from_path(PIPELINE, **overrides)


def spen_ner_md() -> Path:
    """The folder of the named-entity component, for `config={"model": "spen_ner_md"}` in any pipeline."""
    return PIPELINE / "spen_ner"


def spen_pos_md() -> Path:
    """The folder of the part-of-speech tagger."""
    return PIPELINE / "spen_pos"


def spen_srl_md() -> Path:
    """The folder of the semantic role labeller and its predicate tagger."""
    return PIPELINE / "spen_srl"


@hookimpl
def spen_model() -> Functions:
    # A component without a model's name uses spen_en's model.
    return {"spen_ner_md": spen_ner_md, "spen_pos_md": spen_pos_md, "spen_srl_md": spen_srl_md}
