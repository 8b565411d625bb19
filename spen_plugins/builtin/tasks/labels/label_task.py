"""Base of tasks with label sets as outputs: gold, scores, threshold, predictions, protocol."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.builtin.tasks.labels.label_csv import label_csv
from spen_plugins.builtin.tasks.labels.label_hierarchy import find_largest, read_parents
from spen_plugins.builtin.tasks.labels.label_metric import LabelMetric
from spen_plugins.builtin.tasks.labels.label_parts import Columns, LabelParts
from spen_plugins.data.catalogue import locate
from spen_plugins.data.parts.gold import ClassWeightConfig, collate_weights, weigh_labels
from spen_plugins.data.text import sha256
from spen_plugins.errors import ConfigError
from spen_plugins.scores.calibration import Decisions, LabelConfidences
from spen_plugins.scores.label_decoding import Fit, LabelDecoder, as_outputs, between, marginals
from spen_plugins.scores.label_scores import AVERAGE_PRECISION, DEFINITIONS, INCOHERENT, Selection
from spen_plugins.settings.facts import number
from spen_plugins.spaces import IndependentLabels, LabelSet, Proposal
from spen_plugins.task import Metric, Writer
from spen_plugins.task_parts import Calibrated, FitsDecoder, ListsLabels, NamesColumns, WritesFormats

MANY_EMPTY = 0.2  # share of validation examples without labels from which on example F1 misleads


class LabelTask(LabelParts, FitsDecoder, ListsLabels, NamesColumns, Calibrated, WritesFormats):
    """Tasks with label sets as outputs. Subclasses read examples and collate the inputs."""

    lower_is_better = ("hamming", "incoherent")
    fitted_facts = ("threshold", "decode_temperature", "decode_law")
    space: LabelSet

    class Config(ClassWeightConfig):
        threshold: Annotated[float, Field(ge=0, le=1)] | Literal["validation"] = 0.5
        """A label is predicted above this probability; "validation" picks the best of 0.05 to 0.95 on the
        validation part, in steps of 0.05."""
        decode: Literal["threshold", "expected_f1", "validation"] = "threshold"
        """"threshold": labels above it are predicted; "expected_f1": the label set with the highest expected F1 under
        the net's distribution, or, if `selection` is accuracy, the most probable one; "validation": whichever scores
        better on the validation part."""
        decode_temperature: NonNegativeFloat | Literal["validation"] = "validation"
        """T that divides all scores of the distribution of expected F1 (sigmoid(logit / T) for independent labels);
        at 0, the most probable set is predicted. "validation" picks the best of 0.5 to 4 on the validation part, or is
        0 if `selection` is accuracy. Reported probabilities have a separate temperature, from calibration."""
        nonempty: bool = False
        """If true, the label of highest probability is predicted in place of an empty set. Inference nets that choose
        sets themselves ignore it."""
        selection: Selection | None = None
        """Score of the validation part that chooses the epoch, the threshold and the decoder. "accuracy" is the share
        of label sets that are right as a whole; null: example_f1, or micro_f1 if there is only one label."""
        hierarchy: str | dict[str, str] | None = None
        """File of lines `child parent`, or a table {child: parent}, for labels that imply their parent; each has at
        most one. Predicted sets that lack a label's parent are then counted. An ARFF file with a hierarchical class
        contains its own parents; null: none."""
        average_precision: bool = False
        """If true, also computes `micro_ap`, the average precision of all pairs of an example and a label together."""
        at: list[PositiveInt] = Field([1, 3, 5], min_length=1)
        """Numbers k of most probable labels: `ranking` has precision, recall, nDCG and R-precision at each k."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.selection: Selection = config.selection or "example_f1"
        self._fit = Fit(config.decode, config.threshold, config.decode_temperature, self.selection, config.nonempty)
        self.decoder = self._fit.decoders()[0]  # the candidate at 0.5, or at temperature 1
        if config.decode == "threshold" and config.decode_temperature != "validation":
            raise ConfigError("task.decode_temperature requires task.decode=expected_f1 or validation")
        self._class_weights: Tensor | None = None
        self.law = ""  # law of dependent labels, under which F1 is expected

    @property
    def threshold(self) -> float:
        """The decoder's threshold; meaningless if the decoder maximises expected F1."""
        return self.decoder.threshold

    def decoder_settings(self) -> dict[str, Any]:
        """Config settings that set this decoder from the start, without fitting."""
        if self.decoder.temperature is None:
            return {"decode": "threshold", "threshold": self.decoder.threshold, "decode_temperature": "validation"}
        return {"decode": "expected_f1", "decode_temperature": self.decoder.temperature}

    def use_threshold(self) -> float | None:
        """0.5 in place of expected F1, which would choose all labels for outputs near 0 that are no probabilities."""
        if self.decoder.temperature is None:
            return None
        nonempty = self.decoder.nonempty
        self.decoder, self._fit = LabelDecoder(nonempty=nonempty), Fit(nonempty=nonempty)
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
        is_labelled = [example.gold is not None for example in examples]
        weights = {"weights": collate_weights(examples), "class_weights": self._class_weights}
        return Batch.of(self.collate_inputs(examples), None, torch.from_numpy(gold), is_labelled, rows, **weights)

    def _describe_labels(self) -> None:
        """Sets the facts about labels that require a training part: their weights, parents and largest set."""
        labels, train, hierarchy = self.space.labels, self._parts["train"], self.config.hierarchy
        self._class_weights = weigh_labels(self.config.class_weight, labels, train)
        parents = self._list_parents()
        if hierarchy is not None:
            if parents is not None:
                raise ConfigError("task.hierarchy: the labels are paths, which imply their parents; remove the key")
            parents = read_parents(hierarchy, labels)
            if isinstance(hierarchy, str):
                self._files[hierarchy] = sha256(locate(hierarchy))
        self.space = LabelSet(labels, parents, find_largest(train))
        self._choose_selection()
        self._warn_of_empty_sets()

    def _choose_selection(self) -> None:
        """Selects by micro F1 if there is only one label: example F1 ignores false positives on rows without it."""
        if self.config.selection is None and len(self.space.labels) == 1:
            self.selection = "micro_f1"
            self._fit = replace(self._fit, selection=self.selection)

    def _warn_of_empty_sets(self) -> None:
        """Warns if no validation example has a label, or many have none and example F1 is the selection by default."""
        share = np.mean([len(example.gold) == 0 for example in self._parts.get("validation", ())] or [0])
        if share == 1:
            self._warn(f"no example of {self.config.validation or 'validation'} has a label: its scores say nothing")
        elif self.config.selection is None and self.selection == "example_f1" and share >= MANY_EMPTY:
            self._warn(
                f"{share:.0%} of the validation examples have no label. Example F1, which chooses the epoch and the "
                "decoder, ignores labels that are predicted for these; set task.selection=micro_f1"
            )

    def _warn(self, text: str) -> None:
        """A warning before training: in the run's notes, or Python's if the examples are given in Python."""
        if self.in_memory:
            warnings.warn(text, stacklevel=2)
        else:
            self._notes.append(f"warning: {text}")

    def _list_parents(self) -> list[int | None] | None:
        """The index of each label's parent if the labels' own file says it; otherwise None."""
        return None

    def metric(self) -> LabelMetric:
        config = self.config
        return LabelMetric(self.decoder, config.average_precision, config.at, self.space.forest, self.selection)

    def fit_threshold(self, metric: Metric) -> None:
        if not isinstance(metric, LabelMetric):
            return
        self.law = metric.law
        if len(self._fit.decoders()) > 1:
            self.decoder = metric.fit(self._fit)

    def decode(self, proposal: Proposal, x: X | None = None) -> Tensor:
        """The labels that the decoder predicts, unless the net itself chose a set."""
        if proposal.chosen is not None:
            return proposal.chosen
        return self.decoder(as_outputs(proposal)).float().unsqueeze(1)

    def k_best(self, proposal: Proposal, k: int) -> Tensor:
        """The `k` most probable sets. Probabilities of independent labels are shifted so that the threshold is at 1/2;
        under expected F1, or if an empty set is replaced, so that the predicted labels are above 1/2."""
        if not isinstance(proposal, IndependentLabels):
            return proposal.k_best(k)[0]
        shift = torch.logit(torch.tensor(self.threshold), eps=1e-6).to(proposal.logits)
        if not self.decoder.labelwise:
            boundary = between(proposal.logits.detach(), self.decode(proposal) > 0.5)
            uses_threshold = (proposal.logits > shift).any(-1, keepdim=True) & (self.decoder.temperature is None)
            shift = torch.where(uses_threshold, shift, boundary)
        return replace(proposal, logits=proposal.logits - shift).k_best(k)[0]

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each pair of an example and a label, right if the example has the label."""
        if batch.gold is None:
            return None
        p, gold = (y[batch.labelled, 0].detach().float().cpu().numpy().ravel() for y in (proposal.mean, batch.gold))
        return Decisions("labels", LabelConfidences(p), gold > 0.5)

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> list[Any]:
        """The predicted labels of each example, and the probabilities of these and of the `shown` most probable labels.

        These probabilities are calibrated; the decoder uses the uncalibrated ones.
        """
        p = marginals(proposal).cpu()
        predicted = self.decode(proposal)[:, 0].cpu()
        sizes = predicted.sum(1).long()
        limit = p.shape[1] if self.shown is None else self.shown
        count = min(max(limit, int(sizes.max())), p.shape[1])
        label = (p + predicted).topk(count, dim=1).indices  # predicted ones come first, whatever their probability
        value = p.gather(1, label)
        calibrated = LabelConfidences(value.numpy()).at(self.temperature)
        names = self.space.labels
        return [
            {
                "labels": [names[i] for i in order[:n]],
                "probabilities": {names[i]: round(v, 6) for i, v in zip(order[: max(n, limit)], values, strict=False)},
            }
            for order, values, n in zip(label.tolist(), calibrated.tolist(), sizes.tolist(), strict=True)
        ]

    def formats(self) -> dict[str, Writer]:
        return {"csv": label_csv(self.space.labels, self._list_columns, self._find_separator())}

    def _find_separator(self) -> str | None:
        """The separator of labels in one column of CSV; None if each label has its own."""
        return None

    def _list_columns(self, examples: Sequence[Any]) -> Columns:
        """Columns beside the predictions of examples: the columns of the last file read, if they have names."""
        return (self._source and self._read_own_columns(self._source)) or ([], [[] for _ in examples])

    def protocol(self) -> dict[str, Any]:
        definitions = {"micro_ap": AVERAGE_PRECISION} if self.config.average_precision else {}
        definitions |= {} if self.space.forest is None else {"incoherent": INCOHERENT}
        law = f" under {self.law}" if self.law and self.decoder.temperature else ""
        return {**DEFINITIONS, **definitions, "split": self._split, "threshold": f"{self.decoder}{law}, {self._fit}"}

    def label_facts(self) -> dict[str, Any]:
        """The part of `facts` from which `restore_labels` rebuilds the decoder and the facts about labels."""
        return {
            "threshold": self.decoder.threshold,
            **({} if self.decoder.temperature is None else {"decode_temperature": self.decoder.temperature}),
            **({"decode_law": self.law} if self.law else {}),
            **({} if self.space.largest is None else {"largest": self.space.largest}),
            **({} if self.space.forest is None else {"parents": self.space.forest.parents}),
        }

    def restore_labels(self, facts: Mapping[str, Any]) -> None:
        temperature = number(facts, "decode_temperature") if "decode_temperature" in facts else None
        self.decoder = LabelDecoder(number(facts, "threshold"), temperature, self.config.nonempty)
        self.law = facts.get("decode_law", "")
        self.space = LabelSet(self.space.labels, facts.get("parents"), facts.get("largest"))
        self._choose_selection()
