"""Docs as JSON: spaCy's own values, and the values that components of this package add."""

from __future__ import annotations

from typing import Any

from spacy.tokens import Doc, Span

from spen_spacy.extensions import energies, frames, group_scores, span_score, token_score
from spen_spacy.frame import rounded


def to_json(doc: Doc, underscore: list[str] | None = None) -> dict[str, Any]:
    """A doc in plain types, for `json.dumps`: `doc.to_json()` with these additions:

    - `frames`: each frame, as in `Frame.to_dict`,
    - `start_token`, `end_token` (exclusive), `text` and `score` of each of `ents` and `spans`,
    - `score` of each of `tokens`, the probability of its tag,
    - `energies`: the energy by component, where the setting `energy` is on.

    `start` and `end` of `ents`, `sents`, `tokens` and `spans` are spaCy's, in characters. A value without a probability
    has no `score`. Probabilities in `cats` are rounded like the others, to six digits.

    Args:
        doc: the doc.
        underscore: names of your own extensions, as in `doc.to_json`; their values must be plain types.

    Raises:
        RunError: tokens were merged or split after the frames were predicted, as in `doc._.srl`.
        ValueError: an extension's value has no JSON.
    """
    frame_entries = [frame.to_dict() for frame in frames(doc)]  # first: after a merge, spaCy's spans may be no spans
    data = doc.to_json(underscore)
    for token, entry in zip(doc, data["tokens"], strict=True):
        entry |= _describe_score(token_score(token))
    for span, entry in zip(doc.ents, data.get("ents", ()), strict=True):
        entry |= _describe_span(span, span_score(span))
    for key, group in doc.spans.items():
        for span, score, entry in zip(group, group_scores(group), data["spans"][key], strict=True):
            entry |= _describe_span(span, score)
    if doc.cats:
        data["cats"] = {label: rounded(p) for label, p in doc.cats.items()}
    if energy_by_component := energies(doc):
        data["energies"] = {name: rounded(energy) for name, energy in energy_by_component.items()}
    return data | {"frames": frame_entries}


def _describe_span(span: Span, score: float | None) -> dict[str, Any]:
    return {"start_token": span.start, "end_token": span.end, "text": span.text, **_describe_score(score)}


def _describe_score(score: float | None) -> dict[str, float]:
    return {} if score is None else {"score": score}
