"""`spen_multilabel`: labels of a text, each with its probability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example

from spen_plugins import ConfigError, LabelConfidences, TextLabels
from spen_spacy.component import Component
from spen_spacy.predicting import Run


class SpenMultilabel(Component):
    """Labels of a run of task `text`; see the factory for its settings."""

    factory = "spen_multilabel"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._runs["model"].task.space.labels) if self._runs else ()

    @property
    def threshold(self) -> float:
        """The probability above which a label counts as predicted: the setting, or else the run's own."""
        if self.settings["threshold"] is not None:
            return float(self.settings["threshold"])
        task = self.run().task
        return float(LabelConfidences(np.array(task.threshold)).at(task.temperature))

    def check(self, part: str, run: Run) -> None:
        if not isinstance(run.task, TextLabels):
            raise ConfigError(
                f"{self.name}: found a run that doesn't label texts; expected one of task 'text', as text_seal trains"
            )

    def annotate(self, docs: Sequence[Doc]) -> None:
        run = self.run()
        labels = run.task.space.labels
        examples = [run.task.parse({"text": doc.text}) for doc in docs]
        found: list[Any] = [None] * len(docs)
        for proposal, batch, rows in run.proposals(examples):
            p = LabelConfidences(proposal.mean[:, 0].float().cpu().numpy()).at(run.task.temperature).tolist()
            energies = run.energies(proposal, batch) if self.settings["energy"] else [None] * len(rows)
            for row, values, energy in zip(rows, p, energies, strict=True):
                found[row] = values, energy
        for doc, (values, energy) in zip(docs, found, strict=True):
            doc.cats.update(zip(labels, values, strict=True))
            self.keep_energy(doc, [{"energy": energy}])

    def scorer(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """`cats_score` and the other scores of spaCy's `textcat_multilabel`, at `threshold`.

        What `Pipe.score` calls; `spacy find-threshold` asks for it.
        """
        asked = {"multi_label": True, "labels": self.run().task.space.labels, "threshold": self.threshold, **kwargs}
        return Scorer.score_cats(examples, "cats", **asked)
