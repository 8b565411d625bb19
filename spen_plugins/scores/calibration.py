"""Calibration of reported probabilities: temperature scaling and the expected calibration error (Guo et al. 2017).

Most nets are overconfident. One number T, fitted on validation data, flattens (T > 1) or sharpens their probabilities:
p_T ∝ p^(1/T). Decoded outputs don't change, only their reported probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

BINS = 15
LOWEST, HIGHEST = 0.05, 20.0  # range of T
_TINY = 1e-7


class Confidences(ABC):
    """The net's probabilities of some decisions of a batch, at any temperature."""

    @abstractmethod
    def at(self, temperature: float) -> np.ndarray:
        """Probability that each decision is right, `(decision,)`."""


class Decisions(NamedTuple):
    """A batch's decisions (single labels, tags or spans of decoded outputs), with their correctness."""

    kind: str
    """"tags", "spans", "arguments" or "labels"."""
    confidences: Confidences
    right: np.ndarray
    """`(decision,)` boolean."""


@dataclass(frozen=True)
class LabelConfidences(Confidences):
    """Confidences in labels: `p` of any shape, independently calibrated as sigmoid(logit(p) / T)."""

    p: np.ndarray

    def at(self, temperature: float) -> np.ndarray:
        if temperature == 1:
            return self.p
        p = self.p.astype(np.float64).clip(_TINY, 1 - _TINY)
        return 1 / (1 + ((1 - p) / p) ** (1 / temperature))


@dataclass(frozen=True)
class TagConfidences(Confidences):
    """Confidences in tags: marginals `p` `(token, tag)`, and decoded tag indices `tags` `(token,)`."""

    p: np.ndarray
    tags: np.ndarray

    def at(self, temperature: float) -> np.ndarray:
        return tempered(self.p, temperature)[np.arange(len(self.tags)), self.tags]


@dataclass(frozen=True)
class SpanConfidences(Confidences):
    """Confidences in spans, right in type, start and end: all tokens have their tags, and the next continues none.

    A span's confidence is the minimum over these. Their product would treat them as independent, which tags inside one
    span are not: it falls with every token of a long argument, and no temperature corrects that (roles of EWT, CRF:
    expected calibration error 0.111 after fitting, 0.019 with the minimum).

    `tokens` are the spans' tokens with their tags and, if `within` is false, the next tokens with the tag that would
    continue the span; `owner` `(token,)` is the index of each token's span, 0 to `size` - 1.
    """

    tokens: TagConfidences
    within: np.ndarray
    owner: np.ndarray
    size: int

    def at(self, temperature: float) -> np.ndarray:
        p = self.tokens.at(temperature)
        confidences = np.ones(self.size, p.dtype)
        np.minimum.at(confidences, self.owner, np.where(self.within, p, 1 - p))
        return confidences


def tempered(p: np.ndarray, temperature: float) -> np.ndarray:
    """Marginals `(token, tag)` at a temperature; `TagConfidences` are those of the decoded tags."""
    if temperature == 1:
        return p
    # Relative to the largest of each row, so that not all of them underflow.
    powers = (p / p.max(1, keepdims=True)) ** np.float32(1 / temperature)
    return powers / powers.sum(1, keepdims=True)


def tag_confidences(y: Tensor, best: np.ndarray, lengths: np.ndarray) -> TagConfidences:
    """Confidences in the tags of a batch of sentences, sentence by sentence; arguments as in `span_confidences`."""
    mask = np.arange(best.shape[1]) < lengths[:, None]
    return TagConfidences(y.detach().float().cpu().numpy()[mask], best[mask])


def span_confidences(
    y: Tensor,
    best: np.ndarray,
    spans: np.ndarray,
    lengths: np.ndarray,
    goes_on: np.ndarray,
    owner: np.ndarray | None = None,
) -> SpanConfidences:
    """Confidences in the spans of a batch of sentences.

    Args:
        y: marginals `(sentence, token, tag)`.
        best: decoded tags `(sentence, token)`.
        spans: `(span, 4)` sentence, type, first and last token, as in `SpanTable.spans`.
        lengths: `(sentence,)` tokens.
        goes_on: `(type,)` the tag I-x that would continue a span of type x after its last token; -1 if its last tag
            ends it (BIOES), or there is no such tag.
        owner: `(span,)` the index of the decision, from 0, to which each span belongs; None: each span is a decision.
    """
    owner = np.arange(len(spans)) if owner is None else owner
    sentence, kind, first, last = spans.T
    size = last - first + 1
    start = np.repeat(first - np.cumsum(size) + size, size)
    is_open = (goes_on[kind] >= 0) & (last + 1 < lengths[sentence])
    tokens = np.repeat(sentence, size), np.arange(size.sum()) + start
    next_tokens = sentence[is_open], last[is_open] + 1
    tags = np.concatenate([best[tokens], goes_on[kind[is_open]]])
    p = y[tuple(np.concatenate(axis) for axis in zip(tokens, next_tokens, strict=True))].detach().float().cpu().numpy()
    is_within = np.arange(len(tags)) < size.sum()
    owners = np.concatenate([np.repeat(owner, size), owner[is_open]])
    return SpanConfidences(TagConfidences(p, tags), is_within, owners, int(owner.max(initial=-1)) + 1)


def rounded(p: np.ndarray) -> list[float]:
    """Probabilities, rounded as in predictions."""
    return p.astype(np.float64).round(4).tolist()


def expected_calibration_error(decisions: Sequence[Decisions], temperature: float = 1.0) -> float:
    """Mean over decisions of |share of right ones − mean probability| of the bin, with 15 bins of equal width.

    0 without decisions. Guo et al. 2017, Eq. 3. Equal to torchmetrics' `binary_calibration_error`, which needs all
    decisions in one tensor: gigabytes for thousands of labels.
    """
    return _compute_error(_sum_bins(decisions, temperature))


def _compute_error(sums: np.ndarray) -> float:
    counts, probability_sum, right_count = sums
    return float(np.abs(right_count - probability_sum).sum() / max(counts.sum(), 1))


def _sum_bins(decisions: Sequence[Decisions], temperature: float) -> np.ndarray:
    """Number of decisions, sum of their probabilities and number of right ones, `(3, bin)`."""
    sums = np.zeros((3, BINS))
    for p, right in _apply_temperature(decisions, temperature):
        bins = np.clip(np.ceil(p * BINS).astype(int) - 1, 0, BINS - 1)
        sums += [np.bincount(bins, weights, BINS) for weights in (None, p, right)]
    return sums


def _list_bins(sums: np.ndarray) -> list[list[float]]:
    """Each bin's number of decisions, mean probability and share of right ones; without empty bins."""
    return [[int(count), round(p / count, 4), round(right / count, 4)] for count, p, right in sums.T.tolist() if count]


def fit_temperature(decisions: Sequence[Decisions]) -> float:
    """The maximum-likelihood T from 0.05 to 20; 1 if all decisions are right, or all wrong."""
    from scipy.optimize import minimize_scalar

    n, right_count = sum(len(batch.right) for batch in decisions), sum(int(batch.right.sum()) for batch in decisions)
    if right_count in (0, n):
        return 1.0

    def negative_log_likelihood(log_temperature: float) -> float:
        batches = _apply_temperature(decisions, float(np.exp(log_temperature)))
        return -sum(float(np.log(np.where(right, p, 1 - p).clip(_TINY)).sum()) for p, right in batches) / n

    bounds = np.log([LOWEST, HIGHEST])
    best = minimize_scalar(negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(best.x))


def calibrate(parts: dict[str, Sequence[Decisions]]) -> dict[str, Any] | None:
    """Fit T on the first part, and compute calibration errors of each part, with T and without.

    Args:
        parts: each part's batches of decisions, by the part's name.

    Returns:
        `temperature`, `decisions` (their kind), and for each part `ece`, `ece_uncalibrated`, `decisions` (their
        number) and `bins` (number of decisions, mean probability and share of right ones of each bin with T); None
        without decisions.
    """
    first_part = next(iter(parts.values()))
    if not first_part:
        return None
    temperature = round(fit_temperature(first_part), 4)
    sums = {part: _sum_bins(decisions, temperature) for part, decisions in parts.items()}
    return {
        "temperature": temperature,
        "decisions": first_part[0].kind,
        **{
            part: {
                "ece": _compute_error(sums[part]),
                "ece_uncalibrated": expected_calibration_error(decisions),
                "decisions": sum(len(batch.right) for batch in decisions),
                "bins": _list_bins(sums[part]),
            }
            for part, decisions in parts.items()
        },
    }


def describe_bound(fit: Mapping[str, Any]) -> str | None:
    """A warning if the temperature of `calibrate` is at an end of its range; None otherwise."""
    if 1.001 * LOWEST < fit["temperature"] < HIGHEST / 1.001:
        return None
    return (
        f"temperature {fit['temperature']:g} is an end of its range, {LOWEST:g} to {HIGHEST:g}: the "
        f"{fit['validation']['decisions']} decisions on {fit['decisions']} that it is fitted to do not suffice to "
        "calibrate probabilities. Do not rely on them, or run `spen calibrate` on more examples with gold"
    )


def _apply_temperature(decisions: Sequence[Decisions], temperature: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields each batch's probabilities and correctness, `(decision,)`, batch by batch to save memory."""
    for batch in decisions:
        yield batch.confidences.at(temperature).astype(np.float64), batch.right
