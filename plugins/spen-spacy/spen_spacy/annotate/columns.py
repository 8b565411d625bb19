"""The columns of annotated docs: which there are follows from the pipeline, so that all shards have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from spen_plugins import ConfigError, did_you_mean
from spen_spacy.component import Component
from spen_spacy.extensions import ORDER, group_scores, token_score
from spen_spacy.frame import Frame, rounded


class Column(NamedTuple):
    """A column of annotations."""

    kind: str
    """Of its values, by which `cells.TYPES` has their type in Parquet."""
    of: Callable[[Doc], Any]
    """A doc's value, in plain types."""


def columns(nlp: Language, wanted: Sequence[str] | None = None) -> dict[str, Column]:
    """The columns of what a pipeline's components set, by name.

    Args:
        nlp: the pipeline; its components say what they assign, as spaCy's `analyze_pipes` has it.
        wanted: names of the columns; None: all.

    Raises:
        ConfigError: a column that is wanted is not there.
    """
    sets = {attribute for name in nlp.pipe_names for attribute in nlp.get_pipe_meta(name).assigns}
    others = {a for name, c in nlp.pipeline if not isinstance(c, Component) for a in nlp.get_pipe_meta(name).assigns}
    components = [component for _, component in nlp.pipeline if isinstance(component, Component)]
    energies = any(component.settings["energy"] for component in components)
    labelling = [c for c in components if hasattr(c, "predicted")]
    own = sorted(a for a in sets if a.startswith("doc._.") and a not in ("doc._.srl", "doc._.spen_energy"))
    found = {
        "tokens": (sets - {"doc.cats"}, Column("texts", lambda doc: [token.text for token in doc])),
        "token_starts": (sets - {"doc.cats"}, Column("numbers", lambda doc: [token.idx for token in doc])),
        "sentence_starts": (sets & {"doc.sents", "token.is_sent_start", "token.dep"}, Column("numbers", _sentences)),
        "pos": ("token.pos" in sets, Column("texts", lambda doc: [token.pos_ for token in doc])),
        "tags": ("token.tag" in sets, Column("texts", lambda doc: [token.tag_ for token in doc])),
        "tag_scores": ("token._.spen_score" in sets, Column("floats", lambda doc: [token_score(t) for t in doc])),
        "lemmas": ("token.lemma" in sets, Column("texts", lambda doc: [token.lemma_ for token in doc])),
        "morphs": ("token.morph" in sets, Column("texts", lambda doc: [str(token.morph) for token in doc])),
        "deps": ("token.dep" in sets, Column("texts", lambda doc: [token.dep_ for token in doc])),
        "heads": ("token.head" in sets, Column("numbers", lambda doc: [token.head.i for token in doc])),
        "ents": ("doc.ents" in sets, Column("spans", lambda doc: [_span(span) for span in doc.ents])),
        "frames": ("doc._.srl" in sets, Column("frames", lambda doc: [_frame(frame) for frame in doc._.srl])),
        "spans": ("doc.spans" in others, Column("groups", _groups)),
        "cats": ("doc.cats" in sets, Column("numbers_by_name", lambda doc: _rounded(doc.cats))),
        "labels": (
            labelling,
            Column("texts", lambda doc: list(dict.fromkeys(label for c in labelling for label in c.predicted(doc)))),
        ),
        "energies": (energies, Column("numbers_by_name", lambda doc: _rounded(doc._.spen_energy))),
    }
    there = {name: column for name, (is_there, column) in found.items() if is_there}
    there |= {name.removeprefix("doc._."): Column("json", _extension(name)) for name in own}
    for name in wanted or ():
        if name not in there:
            raise ConfigError(
                f"--columns: found {name!r};{did_you_mean(name, there)} this pipeline sets {', '.join(there)}"
            )
    return there if wanted is None else {name: there[name] for name in wanted}


def _sentences(doc: Doc) -> list[int]:
    return [token.idx for token in doc if token.is_sent_start]


def _span(span: Span) -> dict[str, Any]:
    return {"label": span.label_, **_place(span, span._.spen_score if span.has_extension("spen_score") else None)}


def _place(span: Span, score: float | None) -> dict[str, Any]:
    return {"text": span.text, "start": span.start_char, "end": span.end_char, "score": score}


def _frame(frame: Frame) -> dict[str, Any]:
    i = frame.predicate.i
    return {
        "predicate": _place(frame.predicate.doc[i : i + 1], frame.score),
        "sense": frame.sense,
        "gloss": frame.gloss,
        "sense_score": frame.sense_score,
        "arguments": [
            {"role": a.role, "description": a.description, **_place(a.span, a.score)} for a in frame.arguments
        ],
    }


def _groups(doc: Doc) -> list[dict[str, Any]]:
    """The span groups that are not those of entities and frames of ours."""
    return [
        {"key": key, "label": span.label_, **_place(span, score)}
        for key, group in doc.spans.items()
        if ORDER not in group.attrs
        for span, score in zip(group, group_scores(group), strict=True)
    ]


def _rounded(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: rounded(score) for name, score in scores.items()}


def _extension(name: str) -> Callable[[Doc], Any]:
    attribute = name.removeprefix("doc._.")
    return lambda doc: doc._.get(attribute)
