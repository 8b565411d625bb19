"""Predictions of task `tagging`, for users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from spen_plugins.data.schemes import Scheme, Span, write_tags


def tag_predictions(
    words: Sequence[list[str]], tags: Sequence[list[str]], scores: Sequence[float]
) -> list[dict[str, Any]]:
    """Tags of each sentence, with their scores, which come sentence by sentence."""
    rest = iter(scores)
    return [
        {"words": sentence_words, "tags": names, "scores": [next(rest) for _ in names]}
        for sentence_words, names in zip(words, tags, strict=True)
    ]


def span_predictions(
    words: Sequence[list[str]], spans: Iterable[tuple[int, Span]], scores: Iterable[float], scheme: Scheme
) -> list[dict[str, Any]]:
    """Entities of each sentence, with their tags.

    Args:
        words: the sentences.
        spans: number of the sentence, and the span.
        scores: of each span.
        scheme: of the tags.
    """
    scored_spans: list[list[tuple[Span, float]]] = [[] for _ in words]
    for (sentence, span), score in zip(spans, scores, strict=True):
        scored_spans[sentence].append((span, score))
    return [
        {
            "words": sentence_words,
            "tags": write_tags([span for span, _ in scored], len(sentence_words), scheme),
            "entities": [
                {**span._asdict(), "text": " ".join(sentence_words[span.start : span.end]), "score": score}
                for span, score in scored
            ],
        }
        for sentence_words, scored in zip(words, scored_spans, strict=True)
    ]
