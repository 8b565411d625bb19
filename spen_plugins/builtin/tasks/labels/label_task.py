"""Base of tasks with label sets as outputs: gold, scores, threshold, predictions, protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.builtin.tasks.labels.label_metric import LabelMetric
from spen_plugins.builtin.tasks.labels.label_parts import Columns, LabelParts
from spen_plugins.data.parts.gold import ClassWeightConfig, collate_weights, weigh_labels
from spen_plugins.data.records import written
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.scores.calibration import Decisions, LabelConfidences
from spen_plugins.scores.label_scores import AVERAGE_PRECISION, DEFINITIONS, Fit, LabelDecoder, between
from spen_plugins.settings.facts import number
from spen_plugins.spaces import LabelSet, Proposal
from spen_plugins.task import Metric, Writer
from spen_plugins.task_parts import Calibrated, FitsDecoder, ListsLabels, NamesColumns, WritesFormats

PREDICTED, PROBABILITY = "predicted", "p"


class LabelTask(LabelParts, FitsDecoder, ListsLabels, NamesColumns, Calibrated, WritesFormats):
    """Tasks with label sets as outputs. Subclasses read examples and collate the inputs."""

    selection = "example_f1"
    lower_is_better = ("hamming",)
    fitted_facts = ("threshold", "decode_temperature")
    space: LabelSet

    class Config(ClassWeightConfig):
        threshold: Annotated[float, Field(ge=0, le=1)] | Literal["validation"] = 0.5
        """A label is predicted above this probability; "validation" picks the best of 0.05 to 0.95 on the
        validation part, in steps of 0.05."""
        decode: Literal["threshold", "expected_f1", "validation"] = "threshold"
        """"threshold": labels above it are predicted; "expected_f1": the label set of highest expected F1 if labels are
        independent; "validation": the one of both that is better on the validation part."""
        decode_temperature: PositiveFloat | Literal["validation"] = "validation"
        """T of the labels' probabilities sigmoid(logit / T) under which F1 is expected; "validation" picks the best of
        0.5 to 4 on the validation part. Probabilities that are reported have another one, of calibration."""
        average_precision: bool = False
        """If true, also computes `micro_ap`, the average precision of all pairs of an example and a label together."""
        at: list[PositiveInt] = Field([1, 3, 5], min_length=1)
        """Numbers k of likeliest labels: `ranking` has precision, recall, nDCG and R-precision of each k."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._fit = Fit(config.decode, config.threshold, config.decode_temperature)
        self.decoder = self._fit.decoders()[0]  # of those to choose from the one at 0.5, or at temperature 1
        if config.decode == "threshold" and config.decode_temperature != "validation":
            raise ConfigError("task.decode_temperature goes with task.decode=expected_f1 or validation")
        self._class_weights: Tensor | None = None

    @property
    def threshold(self) -> float:
        """The decoder's threshold; without meaning if it goes by expected F1."""
        return self.decoder.threshold

    def decoder_settings(self) -> dict[str, Any]:
        """Settings of the config with which the decoder is this one from the start, and isn't fitted."""
        if self.decoder.temperature is None:
            return {"decode": "threshold", "threshold": self.decoder.threshold, "decode_temperature": "validation"}
        return {"decode": "expected_f1", "decode_temperature": self.decoder.temperature}

    def use_threshold(self) -> float | None:
        """0.5 in place of expected F1, of which outputs near 0 that are no probabilities would have all labels."""
        if self.decoder.temperature is None:
            return None
        self.decoder, self._fit = LabelDecoder(), Fit()
        return self.decoder.threshold

    def _name_labels(self) -> str:
        """The number of labels and the first ten of their names."""
        names = self.space.labels
        return f"{len(names)} labels ({', '.join(names[:10])}{', …' * (len(names) > 10)})"

    @abstractmethod
    def collate_inputs(self, examples: Sequence[Any]) -> dict[str, Tensor]:
        """`X.inputs` of a batch."""

    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        gold = np.zeros((len(examples), 1, len(self.space.labels)), dtype=np.float32)
        for row, example in enumerate(examples):
            if example.gold is not None:
                gold[row, 0, example.gold] = 1
        labelled = [example.gold is not None for example in examples]
        weights = {"weights": collate_weights(examples), "class_weights": self._class_weights}
        return Batch.of(self.collate_inputs(examples), None, torch.from_numpy(gold), labelled, rows, **weights)

    def _weigh_classes(self) -> None:
        """Set the labels' weights, once there is a training part."""
        self._class_weights = weigh_labels(self.config.class_weight, self.space.labels, self._parts["train"])

    def metric(self) -> LabelMetric:
        return LabelMetric(self.decoder, self.config.average_precision, self.config.at)

    def fit_threshold(self, metric: Metric) -> None:
        if len(self._fit.decoders()) > 1 and isinstance(metric, LabelMetric):
            self.decoder = metric.fit(self._fit)

    def decode(self, proposal: Proposal, x: X | None = None) -> Tensor:
        """The labels that the decoder predicts, unless the net itself chose a set."""
        if proposal.chosen is not None:
            return proposal.chosen
        return self.decoder(proposal.mean[:, 0].detach().float()).float().unsqueeze(1)

    def k_best(self, proposal: Proposal, k: int) -> Tensor:
        """The `k` most probable sets, with probabilities shifted so that the threshold is at 1/2; if it is by expected
        F1, so that the predicted labels are above 1/2."""
        even = torch.logit(torch.tensor(self.threshold), eps=1e-6).to(proposal.logits)
        if self.decoder.temperature is not None:
            even = between(proposal.logits.detach(), self.decode(proposal) > 0.5)
        return replace(proposal, logits=proposal.logits - even).k_best(k)[0]

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each pair of an example and a label, right if the example has the label."""
        if batch.gold is None:
            return None
        p, gold = (y[batch.labelled, 0].detach().float().cpu().numpy().ravel() for y in (proposal.mean, batch.gold))
        return Decisions("labels", LabelConfidences(p), gold > 0.5)

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> list[Any]:
        """For each example the predicted labels, and the probabilities of these and of the `shown` most probable.

        Probabilities are calibrated; the threshold, or expected F1, is of the uncalibrated ones.
        """
        p = proposal.mean[:, 0].detach().float().cpu()
        predicted = self.decode(proposal)[:, 0].cpu()
        sizes = predicted.sum(1).long()
        shown = p.shape[1] if self.shown is None else self.shown
        count = min(max(shown, int(sizes.max())), p.shape[1])
        label = (p + predicted).topk(count, dim=1).indices  # predicted ones come first, whatever their probability
        value = p.gather(1, label)
        calibrated = LabelConfidences(value.numpy()).at(self.temperature)
        names = self.space.labels
        return [
            {
                "labels": [names[i] for i in order[:n]],
                "probabilities": {names[i]: round(v, 6) for i, v in zip(order[: max(n, shown)], values, strict=False)},
            }
            for order, values, n in zip(label.tolist(), calibrated.tolist(), sizes.tolist(), strict=True)
        ]

    def formats(self) -> dict[str, Writer]:
        return {"csv": label_csv(self.space.labels, self._columns, self._separator())}

    def _separator(self) -> str | None:
        """The separator of labels in one column of CSV; None if each label has its own."""
        return None

    def _columns(self, examples: Sequence[Any]) -> Columns:
        """Columns beside the predictions of examples: those of the file that was read last, if they have names."""
        return (None if self._source is None else self._read_own_columns(self._source)) or ([], [[] for _ in examples])

    def protocol(self) -> dict[str, Any]:
        more = {"micro_ap": AVERAGE_PRECISION} if self.config.average_precision else {}
        return {**DEFINITIONS, **more, "split": self._split, "threshold": f"{self.decoder}, {self._fit}"}

    def decoder_facts(self) -> dict[str, Any]:
        """Those of `facts` from which `restore_decoder` rebuilds the decoder."""
        more = {} if self.decoder.temperature is None else {"decode_temperature": self.decoder.temperature}
        return {"threshold": self.decoder.threshold, **more}

    def restore_decoder(self, facts: Mapping[str, Any]) -> None:
        temperature = number(facts, "decode_temperature") if "decode_temperature" in facts else None
        self.decoder = LabelDecoder(number(facts, "threshold"), temperature)


def label_csv(
    labels: Sequence[str], columns: Callable[[Sequence[Any]], Columns], separator: str | None = None
) -> Writer:
    """The user's columns as they stand, then the predicted labels, then a probability for each label.

    Predicted labels are in columns `predicted_LABEL` of 0 and 1, or in one column `predicted`; probabilities are in
    columns `p_LABEL`. An underscore is added to names that the user's columns have.

    Args:
        labels: all labels.
        columns: the user's columns, given the examples.
        separator: between the labels of the one column; None for a column for each label.
    """

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        names, rows = columns(examples)
        if separator is None:
            heads = _rename_taken(names, [f"{PREDICTED}_{label}" for label in labels])
        else:
            heads = _rename_taken(names, [PREDICTED])
        heads += _rename_taken(names, [f"{PROBABILITY}_{label}" for label in labels])
        records: list[Sequence[Any]] = [[*names, *heads]]
        for cells, prediction in zip(rows, predictions, strict=True):
            on, p = prediction["labels"], prediction["probabilities"]
            predicted = [_join_labels(on, separator)] if separator else [int(label in on) for label in labels]
            records.append([*cells, *predicted, *(p[label] for label in labels)])
        return written(records)

    return write


def find_label_separator(layout: Layout, usual: str) -> str | None:
    """The separator of a layout's labels; None if they are in columns of 0 and 1."""
    if isinstance(layout.labels, int) or (isinstance(layout.labels, str) and not layout.labels.endswith("*")):
        return layout.separator or usual
    return None


def _rename_taken(taken: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names, all with an underscore more until none is taken."""
    while {*taken} & {*names}:
        names = [f"{name}_" for name in names]
    return list(names)


def _join_labels(labels: Sequence[str], separator: str) -> str:
    odd = next((name for name in labels if separator in name), None)
    if odd is not None:
        expected = f"labels without {separator!r}, which divides them (separator=); jsonl holds any"
        raise DataError("output", None, f"label {odd!r}", expected)
    return separator.join(labels)
