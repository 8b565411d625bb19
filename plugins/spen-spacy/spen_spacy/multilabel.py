"""`spen_multilabel`: labels of a text, each with its probability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example

from spen_plugins import ConfigError, LabelConfidences, TextLabels
from spen_spacy.component import Component
from spen_spacy.predicting import Run


class SpenMultilabel(Component):
    """Labels of a run of task `text`; see the factory for its settings."""

    factory = "spen_multilabel"

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        super().__init__(name, settings)
        threshold = settings["threshold"]
        if threshold is not None and not 0 <= threshold <= 1:
            raise ConfigError(f"{name}: found threshold={threshold}; expected a probability from 0 to 1, or None")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._runs["model"].task.space.labels) if self._runs else ()

    @property
    def threshold(self) -> float | None:
        """The probability above which a label counts as predicted: the setting, or else the run's own; None if the run
        predicts sets of highest expected F1, or no empty ones."""
        if self.settings["threshold"] is not None:
            return float(self.settings["threshold"])
        decoder = self._calibrate_decoder()
        return float(decoder.threshold) if decoder.labelwise else None

    def _calibrate_decoder(self) -> Any:
        """The run's decoder, for calibrated probabilities."""
        task = self.run().task
        decoder, temperature = task.decoder, task.temperature
        threshold = float(LabelConfidences(np.array(decoder.threshold)).at(temperature))
        return replace(
            decoder, threshold=threshold, temperature=decoder.temperature and decoder.temperature / temperature
        )

    def predicted(self, doc: Doc) -> list[str]:
        """The labels that count as predicted, by the probabilities in `doc.cats`; for a run whose labels depend on each
        other, without a threshold, the set that was decoded with them."""
        if (threshold := self.threshold) is None and self._key in doc.user_data:
            return list(doc.user_data[self._key])
        p = [doc.cats[label] for label in self.labels]
        if threshold is not None:
            flags = [value > threshold for value in p]
        else:
            flags = self._calibrate_decoder()(torch.tensor([p], dtype=torch.double))[0].tolist()
        return [label for label, is_predicted in zip(self.labels, flags, strict=True) if is_predicted]

    @property
    def _key(self) -> str:
        """The key of `doc.user_data` for sets of labels that depend on each other."""
        return f"{self.name}.labels"

    def check(self, part: str, run: Run) -> None:
        if not isinstance(run.task, TextLabels):
            raise ConfigError(
                f"{self.name}: found a run that doesn't label texts; expected one of task 'text', as the config "
                "`texts` trains"
            )

    def annotate(self, docs: Sequence[Doc]) -> None:
        run = self.run()
        labels = run.task.space.labels
        examples = [run.task.parse({"text": doc.text}) for doc in docs]
        predictions: list[Any] = [None] * len(docs)
        for proposal, batch, rows in run.proposals(examples):
            p = LabelConfidences(proposal.mean[:, 0].float().cpu().numpy()).at(run.task.temperature).tolist()
            energies = run.energies(proposal, batch) if self.settings["energy"] else [None] * len(rows)
            sets = run.task.decode(proposal, batch.x)[:, 0].tolist() if run.task.law else [None] * len(rows)
            for row, *answer in zip(rows, p, energies, sets, strict=True):
                predictions[row] = answer
        for doc, (values, energy, flags) in zip(docs, predictions, strict=True):
            doc.cats.update(zip(labels, values, strict=True))
            if flags is not None:
                doc.user_data[self._key] = [
                    label for label, is_predicted in zip(labels, flags, strict=True) if is_predicted
                ]
            self.keep_energy(doc, [{"energy": energy}])

    def scorer(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """`cats_score` and the other scores of spaCy's `textcat_multilabel`, of the labels that are `predicted`.

        `Pipe.score` calls it; `spacy find-threshold` asks for it.
        """
        options = {"multi_label": True, "labels": self.run().task.space.labels, "threshold": self.threshold, **kwargs}
        if options["threshold"] is not None:
            return Scorer.score_cats(examples, "cats", **options)
        examples = list(examples)
        sets = {id(example.predicted): dict.fromkeys(self.predicted(example.predicted), 1.0) for example in examples}

        def get_cats(doc: Doc, _: str) -> dict[str, float]:
            return {label: sets[id(doc)].get(label, 0.0) for label in self.labels} if id(doc) in sets else doc.cats

        scores = Scorer.score_cats(examples, "cats", **{**options, "threshold": 0.5, "getter": get_cats})
        probability_scores = Scorer.score_cats(examples, "cats", **{**options, "threshold": 0.5})
        ranks = {name: value for name, value in probability_scores.items() if "auc" in name or "score" in name}
        return {**scores, **ranks}
