"""Decoding of spans: by the most probable tags, or by the set of highest expected gain without overlaps, for span F1.

Predicting a span of posterior p changes F1 = 2 right / (predicted + gold) for the better in expectation if p is above
about F1 / 2, so that a set is worth Σ (p − τ) for a τ of at most 1/2, which the validation part chooses. Overlapping
spans exclude each other: above 1/2 there is nothing to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from spen_plugins.spaces import Proposal, Spans
from spen_plugins.spaces.spans import best_spans

THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(10, 0, -1))
"""Thresholds of which one is picked."""


@dataclass(frozen=True)
class SpanDecoder:
    """Decides on the spans of sentences.

    Attributes:
        threshold: τ of the set of highest Σ (p − τ); None: the spans of the most probable tags (Viterbi).
    """

    threshold: float | None = None

    def __call__(self, proposal: Proposal) -> Tensor:
        """The decoded output `(batch, 1, token, tag)`, with the space's unique types at most once."""
        if self.threshold is None:
            return proposal.mode
        space = proposal.space
        mask = proposal.logits.new_ones(proposal.logits.shape[::2]).bool() if proposal.mask is None else proposal.mask
        spans = best_spans(self.posteriors(proposal), self.threshold, space.unique_types)
        return space.one_hot(space.spans.write(spans, mask).unsqueeze(1), mask).to(proposal.logits.dtype)

    def posteriors(self, proposal: Proposal) -> Spans:
        """All spans that a decoder might predict, computed once per proposal, on the CPU."""
        floor = min(THRESHOLDS[-1], self.threshold or 1.0)
        return proposal.keep(
            ("span posteriors", floor), lambda: Spans(*(values.cpu() for values in proposal.span_posteriors(floor)))
        )

    def __str__(self) -> str:
        if self.threshold is None:
            return "none, but the most probable tags"
        return f"{self.threshold:g}, of spans without overlap by their posteriors"


@dataclass(frozen=True)
class SpanFit:
    """Decoders among which a validation part chooses.

    Attributes:
        decode: "viterbi", "expected_f1", or "validation" for both.
        threshold: τ, or "validation" for `THRESHOLDS`.
    """

    decode: Literal["viterbi", "expected_f1", "validation"] = "viterbi"
    threshold: float | Literal["validation"] = "validation"

    def decoders(self) -> list[SpanDecoder]:
        """All decoders; of equally good ones, the first is chosen."""
        thresholds = THRESHOLDS if self.threshold == "validation" else [self.threshold]
        f1_decoders = [SpanDecoder(threshold) for threshold in thresholds] if self.decode != "viterbi" else []
        return f1_decoders if self.decode == "expected_f1" else [SpanDecoder(), *f1_decoders]

    def __str__(self) -> str:
        """The way in which the decoder was chosen."""
        thresholds = f"from {THRESHOLDS[-1]} to {THRESHOLDS[0]}" if self.threshold == "validation" else ""
        if self.decode == "validation":
            return f"picked on validation: the most probable tags, or a threshold {thresholds or self.threshold}"
        return f"picked on validation {thresholds}" if self.decode == "expected_f1" and thresholds else "fixed"
