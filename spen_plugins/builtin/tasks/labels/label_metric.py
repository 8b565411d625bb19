"""The metric of label sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import DataError
from spen_plugins.scores.label_decoding import Fit, LabelDecoder, describe_law, marginals
from spen_plugins.scores.label_scores import Selection, at_k, average_precision, list_ratios, scores
from spen_plugins.spaces import IndependentLabels, Proposal
from spen_plugins.spaces.forest import Forest
from spen_plugins.task import Metric


class LabelMetric(Metric):
    """Metric that collects probabilities and gold on the CPU, the distributions too if labels depend on each other, and
    decodes at the end, as `LabelTask.decode` does, by a decoder that may be fitted first.

    Args:
        decoder: the decoder of label sets; None: the threshold 0.5.
        average_precision: if true, also computes `micro_ap`, which sorts all probabilities (27 ms for 1472 x 159).
        cutoffs: each k for which `details` scores the k likeliest labels.
        forest: the labels' hierarchy; predictions that are incoherent with it are counted.
        selection: the score of `ratios`.

    Attributes:
        law: the law of dependent labels under which F1 is expected; empty for independent ones.
    """

    def __init__(
        self,
        decoder: LabelDecoder | None = None,
        average_precision: bool = False,
        cutoffs: Sequence[int] = (1, 3, 5),
        forest: Forest | None = None,
        selection: Selection = "example_f1",
    ) -> None:
        self.decoder, self.average_precision, self.cutoffs = decoder or LabelDecoder(), average_precision, cutoffs
        self.forest, self.selection, self.law = forest, selection, ""
        self._dependent: list[Proposal] = []
        self._probabilities: list[Tensor] = []
        self._gold: list[Tensor] = []
        self._labelled: list[Tensor] = []
        self._chosen: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        is_labelled = torch.zeros_like(batch.labelled) if batch.gold is None else batch.labelled
        self._labelled.append(is_labelled.cpu())
        if batch.gold is None:
            return
        p, gold = marginals(proposal), batch.gold[:, 0] > 0.5
        if not bool(batch.labelled.all()):
            p, gold = p[batch.labelled], gold[batch.labelled]
        self._probabilities.append(p.cpu())
        self._gold.append(gold.cpu())
        if proposal.chosen is None and not isinstance(proposal, IndependentLabels):
            self.law = self.law or describe_law(proposal)
            self._dependent.append(proposal.map_rows(lambda values: values[batch.labelled].detach().cpu()))
        if proposal.chosen is not None:
            self._chosen.append((proposal.chosen[:, 0][batch.labelled] > 0.5).cpu())

    def collected(self) -> tuple[Tensor, Tensor]:
        """Probabilities and gold so far, `(example, label)` float and boolean.

        Raises:
            DataError: no example has gold.
        """
        if not any(map(len, self._gold)):
            raise DataError("scores", None, "no example with gold labels", "at least one to score")
        return torch.cat(self._probabilities), torch.cat(self._gold)

    def compute(self) -> dict[str, Any]:
        p, gold = self.collected()
        predicted = self._decode_labels(p)
        result = scores(predicted, gold)
        if self.forest is not None:
            result["incoherent"] = (~self.forest.is_coherent(predicted)).double().mean().item()
        if self.average_precision:
            result["micro_ap"] = average_precision(p.flatten()[None], gold.flatten()[None]) or 0.0
        return result

    def details(self) -> dict[str, Any]:
        p, gold = self.collected()
        precisions = {"example_ap": average_precision(p, gold), "label_ap": average_precision(p.T, gold.T)}
        scores = {name: value for name, value in precisions.items() if value is not None}
        return {**scores, "ranking": at_k(p, gold, self.cutoffs)}

    def ratios(self) -> tuple[Tensor, Tensor] | None:
        """Each example's part of the selection score; None for macro F1."""
        p, gold = self.collected()
        parts = list_ratios(self._decode_labels(p), gold, self.selection)
        if parts is None:
            return None
        is_labelled = torch.cat(self._labelled)
        numerator, denominator = torch.zeros(2, len(is_labelled), dtype=torch.double)
        numerator[is_labelled], denominator[is_labelled] = parts
        return numerator, denominator

    def _decode_labels(self, p: Tensor) -> Tensor:
        """Labels of the sets that the net chose, or else that the decoder predicts, boolean `(example, label)`."""
        return torch.cat(self._chosen) if self._chosen else self.decoder(self._dependent or p)

    def fit(self, fit: Fit) -> LabelDecoder:
        """Takes the best decoder that `fit` admits; unchanged if the net itself chose the label sets."""
        p, gold = self.collected()
        if not self._chosen:
            self.decoder = fit(self._dependent or p, gold)
        return self.decoder
