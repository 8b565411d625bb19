"""Base of tasks with label sets as outputs: gold, scores, threshold, predictions, protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.builtin.tasks.labels.label_formats import label_csv
from spen_plugins.builtin.tasks.labels.label_metric import LabelMetric
from spen_plugins.data.catalogue import locate
from spen_plugins.data.equal_inputs import shared_inputs
from spen_plugins.data.parts.carving import same_files
from spen_plugins.data.parts.class_weights import ClassWeightConfig, collate_weights, weigh_labels
from spen_plugins.data.parts.file_parts import (
    checksums_of,
    named_files,
    note_unseen,
)
from spen_plugins.data.parts.given import checked_weights
from spen_plugins.data.parts.part_rows import keys_of_parts, rows_of_parts
from spen_plugins.data.parts.partly_labelled import WithoutGold, hide_gold
from spen_plugins.data.parts.strata import Kind
from spen_plugins.data.tables.column_keys import ColumnKeys
from spen_plugins.data.texts.own_columns import Columns
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.scores import ranking
from spen_plugins.scores.calibration import Decisions, LabelConfidences
from spen_plugins.scores.label_decoder import Fit, LabelDecoder, between
from spen_plugins.scores.labels import AVERAGE_PRECISION, DEFINITIONS
from spen_plugins.settings.facts import number
from spen_plugins.spaces import LabelSet, Proposal
from spen_plugins.task import Metric, Task, Writer
from spen_plugins.task_parts import Calibrated, FitsDecoder, ListsLabels, NamesColumns, WritesFormats


class Labelled(Protocol):
    """An example of a label task."""

    @property
    def gold(self) -> np.ndarray | None:
        """Indices of its labels; None without gold."""

    @property
    def weight(self) -> float:
        """The weight of its loss."""


class LabelTask(Task, WithoutGold, FitsDecoder, ListsLabels, NamesColumns, Calibrated, WritesFormats):
    """Tasks with label sets as outputs. Subclasses read examples and collate the inputs."""

    selection = "example_f1"
    lower_is_better = ("hamming",)
    fitted_facts = ("threshold", "decode_temperature")
    space: LabelSet
    kind: ClassVar[Kind]
    """The kind of a table's rows."""

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
        self._parts: dict[str, Sequence[Any]] = {}
        self._files: dict[str, str] = {}
        self._source: Path | None = None  # of the examples to predict
        self._split = ""
        self._notes: list[str] = []
        self._class_weights: Tensor | None = None

    @property
    def threshold(self) -> float:
        """The decoder's threshold; without meaning if it goes by expected F1."""
        return self.decoder.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self.decoder, self._fit = LabelDecoder(value), Fit(threshold=value)

    def decoder_settings(self) -> dict[str, Any]:
        """Settings of the config with which the decoder is this one from the start, and isn't fitted."""
        if self.decoder.temperature is None:
            return {"decode": "threshold", "threshold": self.decoder.threshold, "decode_temperature": "validation"}
        return {"decode": "expected_f1", "decode_temperature": self.decoder.temperature}

    def use_threshold(self) -> float | None:
        """0.5 in place of expected F1, of which outputs near 0 that are no probabilities would have all labels."""
        if self.decoder.temperature is None:
            return None
        self.threshold = 0.5
        return 0.5

    def notes(self) -> Sequence[str]:
        return self._notes

    def _labels_named(self) -> str:
        """The number of labels and the first ten of their names."""
        names = self.space.labels
        return f"{len(names)} labels ({', '.join(names[:10])}{', …' * (len(names) > 10)})"

    @abstractmethod
    def collate_inputs(self, examples: Sequence[Any]) -> dict[str, Tensor]:
        """`X.inputs` of a batch."""

    def part(self, name: str) -> Sequence[Any]:
        return self._parts.get(name, [])

    def collate(self, examples: Sequence[Labelled], rows: Sequence[int] | None = None) -> Batch:
        size = len(examples)
        labelled = np.array([example.gold is not None for example in examples])
        gold = None
        if labelled.any():
            sets = [np.empty(0, np.int32) if example.gold is None else example.gold for example in examples]
            dense = np.zeros((size, 1, len(self.space.labels)), dtype=np.float32)
            dense[np.repeat(np.arange(size), [len(s) for s in sets]), 0, np.concatenate(sets)] = 1
            gold = torch.from_numpy(dense)
        numbers = torch.arange(size) if rows is None else torch.as_tensor(rows, dtype=torch.long)
        x, known = X(self.collate_inputs(examples), None, size), torch.from_numpy(labelled)
        weights = {"weights": collate_weights(examples), "class_weights": self._class_weights}
        return Batch(x, numbers, gold, known, **weights)

    def _weigh_examples(self, parts: Mapping[str, tuple[str, Sequence[int]]]) -> None:
        """Give the training examples the weights in the column `task.sample_weight`; 0 leaves one out.

        Args:
            parts: as `_divide` has them.
        """
        name = self.config.sample_weight
        if name is None:
            return
        key, rows = parts["train"]
        path = named_files(self.config)[key]
        names, cells = self._own_columns(locate(path)) or ([], [])
        if name not in names:
            raise DataError(path, None, f"columns {', '.join(names)}", f"{name!r}, of weights (task.sample_weight)")
        at = names.index(name)
        weights = checked_weights([cells[row][at] for row in rows], len(rows), f"column {name!r} of {path}")
        both = zip(self._parts["train"], weights.tolist(), strict=True)
        self._parts["train"] = [self._weighted(example, weight) for example, weight in both if weight]

    @abstractmethod
    def _weighted(self, example: Any, weight: float) -> Any:
        """The example with a weight."""

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
        return (None if self._source is None else self._own_columns(self._source)) or ([], [[] for _ in examples])

    def _own_columns(self, path: Path) -> Columns | None:
        """A file's columns as they stand; None if they have no names."""
        return None

    def protocol(self) -> dict[str, Any]:
        more = {"micro_ap": AVERAGE_PRECISION} if self.config.average_precision else {}
        defined = {**DEFINITIONS, **ranking.DEFINITIONS, **more}
        return {**defined, "split": self._split, "threshold": f"{self.decoder}, {self._fit}"}

    def decoder_facts(self) -> dict[str, Any]:
        """Those of `facts` from which `restore_decoder` rebuilds the decoder."""
        more = {} if self.decoder.temperature is None else {"decode_temperature": self.decoder.temperature}
        return {"threshold": self.decoder.threshold, **more}

    def restore_decoder(self, facts: Mapping[str, Any]) -> None:
        temperature = number(facts, "decode_temperature") if "decode_temperature" in facts else None
        if temperature is not None and temperature <= 0:
            raise ValueError(f"decode_temperature: found {temperature}; expected a number above 0")
        self.decoder = LabelDecoder(number(facts, "threshold"), temperature)

    def checksums(self) -> dict[str, str]:
        return dict(self._files)

    def _divide(
        self, gold: Mapping[str, Sequence[np.ndarray | None]], inputs: Mapping[str, Sequence[Hashable]]
    ) -> dict[str, tuple[str, Sequence[int]]]:
        """Part -> the setting that names its file, and its rows there; sets what is said of the files.

        Args:
            gold: label numbers of each row of each file, by its setting.
            inputs: of each row, a key that equal inputs have in common.
        """
        files = named_files(self.config)
        self._files |= checksums_of({key: name for key, name in files.items() if name not in self._files})
        parts, made = rows_of_parts(files, gold, inputs, keys=ColumnKeys.of_config(self.config), kind=self.kind)
        self._split = f"rows of {files['split']}" if "split" in files else "files " + ", ".join(files.values())
        if made is not None:
            self._split = made if "file" in files else f"{self._split}; {made}"
            self._notes.append(made)
        return parts

    def _warn_of_shared(
        self, parts: Mapping[str, tuple[str, Sequence[int]]], inputs: Mapping[str, Sequence[Hashable]]
    ) -> None:
        """Note the parts, as `_divide` has them, that are the same or share inputs."""
        self._notes += same_files(named_files(self.config), self._files) or shared_inputs(keys_of_parts(parts, inputs))

    def _hide_gold(self, hidden: Callable[[Any], Any], read: Callable[[Path], Sequence[Any]]) -> None:
        """Give the training part the gold that the config allows, and its files without gold.

        Args:
            hidden, read: as `hide_gold`.
        """
        c = self.config
        gold, others, sums = hide_gold(c, c.train or c.file or "the data", self._parts["train"], hidden, read)
        self._parts["train"] = [*gold * c.repeat, *others]
        self._files |= sums
        if others:
            self._split += f"; {len(gold)} training examples with gold, {len(others)} without"

    def _check_parts(self, seen: set[int] | None = None) -> None:
        """Check that there are examples to learn from, and gold wherever scores are computed.

        Args:
            seen: the labels of the training part if it stays on disk, where all examples have gold.

        Raises:
            DataError: a part for training has no example with gold, or a scored part has an example without.
        """
        for name, examples in self._parts.items():
            if name == "train" and seen is not None:
                continue
            source = "split" if self.config.split else name
            where = getattr(self.config, source) or self.config.train or self.config.file or "the data"
            labelled = sum(example.gold is not None for example in examples)
            if name != "test" and not labelled:
                raise DataError(where, None, f"no labelled example in the {name} part (task.{source})", "at least one")
            if name != "train" and labelled < len(examples):
                raise DataError(
                    where, None, f"{len(examples) - labelled} rows without labels in the {name} part", "labels"
                )
        if seen is None:
            seen = {i for example in self._parts["train"] if example.gold is not None for i in example.gold.tolist()}
        self._note_unseen(seen)

    def _note_unseen(self, seen: set[int]) -> None:
        """Warn of labels that other parts have and no training example, which has those `seen`."""
        others = [example for name, some in self._parts.items() if name != "train" for example in some]
        unseen = sorted({i for example in others if example.gold is not None for i in example.gold.tolist()} - seen)
        labels = self.space.labels
        self._notes += note_unseen([labels[i] for i in unseen], len(labels), "labels")
