"""An English pipeline over one pretrained encoder: `spacy.load("spen_en_md")`.

Parts of speech (`token.pos_`, `token.tag_`), names (`doc.ents`), predicates with their senses and arguments
(`doc._.srl`), each with a calibrated probability, by nets that share one MiniLM; sentences, lemmas and features of
words by spaCy's own components.
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
    """The pipeline, as `spacy.load` calls it, with the arguments of `spacy.load`."""
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
    # Without a name, components of any pipeline take spen_en's.
    return {"spen_ner_md": spen_ner_md, "spen_pos_md": spen_pos_md, "spen_srl_md": spen_srl_md}
