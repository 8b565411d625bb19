"""Tasks that find spans: decoding of spans, which the validation part may choose, and confidences in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.data.schemes import Span
from spen_plugins.errors import ConfigError
from spen_plugins.scores.calibration import Confidences, LabelConfidences, span_confidences
from spen_plugins.scores.span_decoding import SpanDecoder, SpanFit
from spen_plugins.scores.spans import SpanTable
from spen_plugins.sentences.tasks import SentenceTask
from spen_plugins.settings.config import Config
from spen_plugins.settings.facts import number
from spen_plugins.spaces import Proposal
from spen_plugins.task import Metric, Shown
from spen_plugins.task_parts import FitsDecoder

Decode = Callable[[Proposal], Tensor]


class SpanConfig(Config):
    """Settings of decoding."""

    decode: Literal["viterbi", "expected_f1", "validation"] = "viterbi"
    """"viterbi": the most probable tags; "expected_f1": the spans without overlap with the largest Σ (p − τ),
    where p is the probability of each span; "validation": whichever scores better on the validation part."""
    threshold: Annotated[float, Field(gt=0, le=0.5)] | Literal["validation"] = "validation"
    """τ of expected F1; "validation" picks the best of 0.05 to 0.5 on the validation part, in steps of 0.05."""


class FittedMetric(Metric):
    """A task's metric under each of several decoders, from which `fit` chooses one.

    Args:
        decoders: at least one.
        decoder: the decoder among them that counts before `fit`.
        make: makes the metric for a decoding.
    """

    def __init__(self, decoders: Sequence[SpanDecoder], decoder: SpanDecoder, make: Callable[[Decode], Metric]) -> None:
        self._metrics = {decoder: make(_take_chosen(decoder)) for decoder in decoders}
        self.decoder = decoder

    def update(self, proposal: Proposal, batch: Batch) -> None:
        for metric in self._metrics.values():
            metric.update(proposal, batch)

    def compute(self) -> dict[str, Any]:
        return self._metrics[self.decoder].compute()

    def ratios(self) -> tuple[Tensor, Tensor] | None:
        return self._metrics[self.decoder].ratios()

    def fit(self, selection: str) -> SpanDecoder:
        """Takes the decoder with the best score; the first one in a tie."""
        scores = {decoder: round(metric.compute()[selection], 9) for decoder, metric in self._metrics.items()}
        self.decoder = max(scores, key=scores.__getitem__)
        return self.decoder


def _take_chosen(decoder: SpanDecoder) -> Decode:
    return lambda proposal: decoder(proposal) if proposal.chosen is None else proposal.chosen


class SpanTask(SentenceTask, FitsDecoder):
    """A task over sentences whose outputs are spans in tags; `Config` inherits from `SpanConfig`, `__init__` is called,
    `load` and `restore` set `_table`, and an example has `names`, its gold tags or None."""

    _table: SpanTable

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._set_fit(SpanFit(config.decode, config.threshold))
        if config.decode == "viterbi" and config.threshold != "validation":
            raise ConfigError("task.threshold requires task.decode=expected_f1 or validation")

    def _set_fit(self, fit: SpanFit) -> None:
        self._fit = fit
        self._decoders: Sequence[SpanDecoder] = fit.decoders()
        self.decoder = self._decoders[0]

    def decode(self, proposal: Proposal, x: X | None = None) -> Tensor:
        """The tags that the decoder predicts, unless the net itself chose an output."""
        return _take_chosen(self.decoder)(proposal)

    def fit_threshold(self, metric: Metric) -> None:
        if isinstance(metric, FittedMetric):
            self.decoder = metric.fit(self.selection)

    def decoder_settings(self) -> dict[str, Any]:
        if self.decoder.threshold is None:
            return {"decode": "viterbi", "threshold": "validation"}
        return {"decode": "expected_f1", "threshold": self.decoder.threshold}

    def use_threshold(self) -> float | None:
        """None: relaxed outputs of any kind have spans."""
        return None

    def k_best(self, proposal: Proposal, k: int) -> Tensor:
        """The `k` most probable tags, whatever the decoder."""
        return proposal.k_best(k)[0]

    def decoder_facts(self) -> dict[str, Any]:
        """The part of `facts` from which `restore_decoder` rebuilds the decoder."""
        return {} if self.decoder.threshold is None else {"threshold": self.decoder.threshold}

    def restore_decoder(self, facts: Mapping[str, Any]) -> None:
        """Takes the decoder of a run, which is fixed."""
        self.decoder = SpanDecoder(number(facts, "threshold") if "threshold" in facts else None)
        self._decoders = [self.decoder]

    def show(self, example: Any) -> Shown:
        return Shown(example.entry.words, example.names)

    def _make_metric(self, make: Callable[[Decode], Metric]) -> Metric:
        """The metric of `make`, under each decoder if the validation part chooses one."""
        return FittedMetric(self._decoders, self.decoder, make) if len(self._decoders) > 1 else make(self.decode)

    def _describe_threshold(self) -> str | None:
        """The decoder, and how it was chosen, for the protocol; None if it is always the most probable tags."""
        return None if self._fit.decode == "viterbi" else f"{self.decoder}, {self._fit}"

    def _name_spans(self, spans: np.ndarray) -> list[tuple[int, Span]]:
        """The sentence and the span, for each span of `_table`."""
        roles = self._table.roles
        return [(row, Span(roles[kind], first, last + 1)) for row, kind, first, last in spans.tolist()]

    def _find_confidences(
        self,
        proposal: Proposal,
        best: np.ndarray,
        spans: np.ndarray,
        lengths: np.ndarray,
        owner: np.ndarray | None = None,
    ) -> Confidences:
        """Confidences in decoded spans: their posteriors if the decoder uses them, otherwise by `span_confidences` with
        the same arguments. A decision of several spans has the lowest of their confidences."""
        if self.decoder.threshold is None or proposal.chosen is not None:
            return span_confidences(proposal.mean[:, 0], best, spans, lengths, self._table.goes_on, owner)
        owner = np.arange(len(spans)) if owner is None else owner
        posteriors = self.decoder.posteriors(proposal)
        shape = (len(best), best.shape[1] + 1, best.shape[1] + 1, len(self._table.roles))
        posterior_keys = np.ravel_multi_index(
            [indices.numpy() for indices in (*posteriors[:3], posteriors.type)], shape
        )
        row, kind, first, last = spans.T
        keys = np.ravel_multi_index([row, first, last + 1, kind], shape)
        order = posterior_keys.argsort()
        p = posteriors.p.numpy()[order[np.searchsorted(posterior_keys, keys, sorter=order)]]
        lowest = np.ones(int(owner.max(initial=-1)) + 1)
        np.minimum.at(lowest, owner, p)
        return LabelConfidences(lowest)
