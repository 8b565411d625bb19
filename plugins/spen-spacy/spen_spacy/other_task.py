"""`spen_task`: predictions of a run of any other task that reads docs."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.tokens import Doc

from spen_plugins import ConfigError, ReadsDocs
from spen_spacy.component import Component
from spen_spacy.extensions import PREDICTIONS
from spen_spacy.predicting import Run
from spen_spacy.word_component import ask


class SpenTask(Component):
    """Predictions of a run whose task `ReadsDocs`; see the factory for its settings."""

    factory = "spen_task"

    def check(self, part: str, run: Run) -> None:
        if not isinstance(run.task, ReadsDocs):
            raise ConfigError(
                f"{self.name}: found a run of a task ({type(run.task).__name__}) that cannot read docs; expected a "
                "task that inherits from sp.ReadsDocs"
            )

    def annotate(self, docs: Sequence[Doc]) -> None:
        run = self.run()
        examples = [[run.task.parse(item) for item in run.task.read_doc(doc)] for doc in docs]
        for doc, answers in zip(docs, ask(run, examples), strict=True):
            doc.user_data.setdefault(PREDICTIONS, {})[self.name] = answers
            self.keep_energy(doc, answers)
