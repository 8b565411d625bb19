"""The columns of annotated docs: which there are follows from the pipeline, so that all shards have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from spen_plugins import ConfigError, did_you_mean
from spen_spacy.component import Component
from spen_spacy.extensions import ORDER, group_scores, token_score
from spen_spacy.frame import Frame, rounded


class Column(NamedTuple):
    """A column of annotations."""

    kind: str
    """Kind of its values, by which `cells.TYPES` has their type in Parquet."""
    read: Callable[[Doc], Any]
    """Returns a doc's value, in plain types."""


_TOKENS: dict[str, tuple[str, str, Callable[[Token], Any]]] = {
    "pos": ("token.pos", "texts", attrgetter("pos_")),
    "tags": ("token.tag", "texts", attrgetter("tag_")),
    "tag_scores": ("token._.spen_score", "floats", token_score),
    "lemmas": ("token.lemma", "texts", attrgetter("lemma_")),
    "morphs": ("token.morph", "texts", lambda token: str(token.morph)),
    "deps": ("token.dep", "texts", attrgetter("dep_")),
    "heads": ("token.head", "numbers", lambda token: token.head.i),
}
"""Column -> the attribute that a component must assign, the kind, and the value of a token."""


def list_columns(nlp: Language, wanted: Sequence[str] | None = None) -> dict[str, Column]:
    """The columns of what a pipeline's components say they assign, as spaCy's `analyze_pipes` has it, without what a
    run of ours does not set, by name: all, or those that are wanted; `ConfigError` if one of these is not there."""
    assigned: set[str] = set()
    for name, component in nlp.pipeline:
        assigned |= {*nlp.get_pipe_meta(name).assigns} - getattr(component, "unassigned", frozenset())
    known = _token_columns(assigned) | _doc_columns(nlp, assigned)
    for attribute in sorted(assigned - {"doc._.srl", "doc._.spen_energy"}):
        if attribute.startswith("doc._."):
            known[attribute.removeprefix("doc._.")] = Column("json", attrgetter(attribute.removeprefix("doc.")))
    for name in wanted or ():
        if name not in known:
            raise ConfigError(
                f"--columns: found {name!r};{did_you_mean(name, known)} this pipeline sets {', '.join(known)}"
            )
    return known if wanted is None else {name: known[name] for name in wanted}


def _token_columns(assigned: set[str]) -> dict[str, Column]:
    known = {}
    if assigned - {"doc.cats"}:
        known["tokens"] = Column("texts", lambda doc: [token.text for token in doc])
        known["token_starts"] = Column("numbers", lambda doc: [token.idx for token in doc])
    if assigned & {"doc.sents", "token.is_sent_start", "token.dep"}:
        known["sentence_starts"] = Column("numbers", lambda doc: [t.idx for t in doc if t.is_sent_start])
    for name, (attribute, kind, read) in _TOKENS.items():
        if attribute in assigned:
            known[name] = Column(kind, lambda doc, read=read: [read(token) for token in doc])
    return known


def _doc_columns(nlp: Language, assigned: set[str]) -> dict[str, Column]:
    components = [component for _, component in nlp.pipeline if isinstance(component, Component)]
    labelling = [component for component in components if hasattr(component, "predicted")]
    others = [name for name, component in nlp.pipeline if not isinstance(component, Component)]
    known = {}
    if "doc.ents" in assigned:
        known["ents"] = Column("spans", lambda doc: [_span(span) for span in doc.ents])
    if "doc._.srl" in assigned:
        known["frames"] = Column("frames", lambda doc: [_frame(frame) for frame in doc._.srl])
    if any("doc.spans" in nlp.get_pipe_meta(name).assigns for name in others):
        known["spans"] = Column("groups", _groups)
    if "doc.cats" in assigned:
        known["cats"] = Column("numbers_by_name", lambda doc: _rounded(doc.cats))
    if labelling:
        known["labels"] = Column("texts", lambda doc: _labels(doc, labelling))
    if any(component.settings["energy"] for component in components):
        known["energies"] = Column("numbers_by_name", lambda doc: _rounded(doc._.spen_energy))
    return known


def _labels(doc: Doc, components: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(label for component in components for label in component.predicted(doc)))


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
