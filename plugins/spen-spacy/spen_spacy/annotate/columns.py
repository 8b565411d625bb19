"""The columns of annotated docs, which follow from the pipeline, so that all shards have the same."""

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
    """Kind of its values, a key of `cells.TYPES`, which has their type in Parquet."""
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
"""Column -> the attribute that a component must assign, the kind, and a function that returns a token's value."""


def list_columns(nlp: Language, names: Sequence[str] | None = None) -> dict[str, Column]:
    """The columns by name, of all attributes that a pipeline's components declare to assign, as in spaCy's
    `analyze_pipes`, except those that our runs do not set: all columns, or those in `names`. `ConfigError` if one of
    these does not exist."""
    assigned: set[str] = set()
    for name, component in nlp.pipeline:
        assigned |= {*nlp.get_pipe_meta(name).assigns} - getattr(component, "unassigned", frozenset())
    columns = _list_token_columns(assigned) | _list_doc_columns(nlp, assigned)
    for attribute in sorted(assigned - {"doc._.srl", "doc._.spen_energy"}):
        if attribute.startswith("doc._."):
            columns[attribute.removeprefix("doc._.")] = Column("json", attrgetter(attribute.removeprefix("doc.")))
    for name in names or ():
        if name not in columns:
            raise ConfigError(
                f"--columns: found {name!r};{did_you_mean(name, columns)} this pipeline sets {', '.join(columns)}"
            )
    return columns if names is None else {name: columns[name] for name in names}


def _list_token_columns(assigned: set[str]) -> dict[str, Column]:
    columns = {}
    if assigned - {"doc.cats"}:
        columns["tokens"] = Column("texts", lambda doc: [token.text for token in doc])
        columns["token_starts"] = Column("numbers", lambda doc: [token.idx for token in doc])
    if assigned & {"doc.sents", "token.is_sent_start", "token.dep"}:
        columns["sentence_starts"] = Column("numbers", lambda doc: [token.idx for token in doc if token.is_sent_start])
    for name, (attribute, kind, read) in _TOKENS.items():
        if attribute in assigned:
            columns[name] = Column(kind, lambda doc, read=read: [read(token) for token in doc])
    return columns


def _list_doc_columns(nlp: Language, assigned: set[str]) -> dict[str, Column]:
    components = [component for _, component in nlp.pipeline if isinstance(component, Component)]
    labellers = [component for component in components if hasattr(component, "predicted")]
    other_names = [name for name, component in nlp.pipeline if not isinstance(component, Component)]
    columns = {}
    if "doc.ents" in assigned:
        columns["ents"] = Column("spans", lambda doc: [_describe_span(span) for span in doc.ents])
    if "doc._.srl" in assigned:
        columns["frames"] = Column("frames", lambda doc: [_describe_frame(frame) for frame in doc._.srl])
    if any("doc.spans" in nlp.get_pipe_meta(name).assigns for name in other_names):
        columns["spans"] = Column("groups", _list_groups)
    if "doc.cats" in assigned:
        columns["cats"] = Column("numbers_by_name", lambda doc: _round_scores(doc.cats))
    if labellers:
        columns["labels"] = Column("texts", lambda doc: _list_labels(doc, labellers))
    if any(component.settings["energy"] for component in components):
        columns["energies"] = Column("numbers_by_name", lambda doc: _round_scores(doc._.spen_energy))
    return columns


def _list_labels(doc: Doc, components: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(label for component in components for label in component.predicted(doc)))


def _describe_span(span: Span) -> dict[str, Any]:
    return {
        "label": span.label_,
        **_describe_place(span, span._.spen_score if span.has_extension("spen_score") else None),
    }


def _describe_place(span: Span, score: float | None) -> dict[str, Any]:
    return {"text": span.text, "start": span.start_char, "end": span.end_char, "score": score}


def _describe_frame(frame: Frame) -> dict[str, Any]:
    i = frame.predicate.i
    return {
        "predicate": _describe_place(frame.predicate.doc[i : i + 1], frame.score),
        "sense": frame.sense,
        "gloss": frame.gloss,
        "sense_score": frame.sense_score,
        "arguments": [
            {
                "role": argument.role,
                "description": argument.description,
                **_describe_place(argument.span, argument.score),
            }
            for argument in frame.arguments
        ],
    }


def _list_groups(doc: Doc) -> list[dict[str, Any]]:
    """The spans of all groups but those of our entities and frames."""
    return [
        {"key": key, "label": span.label_, **_describe_place(span, score)}
        for key, group in doc.spans.items()
        if ORDER not in group.attrs
        for span, score in zip(group, group_scores(group), strict=True)
    ]


def _round_scores(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: rounded(score) for name, score in scores.items()}
