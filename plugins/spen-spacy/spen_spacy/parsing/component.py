"""`spen_parser`: the constituents of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spacy.tokens import Doc, Span

from spen_plugins import ConfigError
from spen_spacy.parsing.trees import keep_trees
from spen_spacy.predicting import Run
from spen_spacy.reading import Reading, Window
from spen_spacy.word_component import WordComponent

TASK = "infnet.parsing"


class SpenParser(WordComponent):
    """Trees of a run of task `infnet.parsing`; see the factory for its settings."""

    factory = "spen_parser"

    def check(self, part: str, run: Run) -> None:
        if run.task.selection != "bracket_f1":  # the tasks of other plugins are not imported
            raise ConfigError(
                f"{self.name}: found a run whose outputs are not trees; expected one of task {TASK!r}, as the config "
                "`parsing` trains"
            )

    def annotate(self, docs: Sequence[Doc]) -> None:
        readings = [Reading(doc) for doc in docs]
        for reading, answers in zip(readings, self.read(self.run(), readings), strict=True):
            doc, places = reading.doc, reading.places
            pieces = [(places[window.own_start], places[window.own_end - 1] + 1) for window, _ in answers]
            spans = [
                Span(doc, places[start], places[end - 1] + 1, label=label)
                for window, answer in answers
                for start, end, label in _find_own(window, answer["constituents"])
            ]
            keep_trees(doc, self.name, pieces, spans)
            self.keep_energy(doc, [answer for _, answer in answers])


def _find_own(window: Window, constituents: Sequence[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """The constituents within a window's own words: a sentence of several windows has one tree per window."""
    spans = [
        (window.start + constituent["start"], window.start + constituent["end"], constituent["label"])
        for constituent in constituents
    ]
    return [span for span in spans if window.own_start <= span[0] and span[1] <= window.own_end]
