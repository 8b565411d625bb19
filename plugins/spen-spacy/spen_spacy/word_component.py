"""Base class of the components that read words: the pieces of docs, in windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from spen_plugins import ConfigError
from spen_spacy.component import Component
from spen_spacy.predicting import Run
from spen_spacy.reading import Reading, Window, windows


class WordComponent(Component):
    """A component whose runs take words as input."""

    reads_whole: ClassVar[bool] = False
    """If true, docs without sentences are read in one piece."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        super().__init__(name, settings)
        for key, minimum in (("window", 1), ("rerank", 0)):
            value = settings[key]
            if not isinstance(value, int) or value < minimum:  # spaCy lets "4" through
                raise ConfigError(f"{name}: found {key}={value!r}; expected a whole number, at least {minimum}")

    def pieces(self, reading: Reading) -> list[tuple[int, int]]:
        """The doc's pieces, according to the setting `sentences`."""
        return reading.pieces(self.settings["sentences"], "doc" if self.reads_whole else "rule")

    def read(self, run: Run, readings: Sequence[Reading]) -> list[list[tuple[Window, Any]]]:
        """The windows of each doc, with a tagging run's prediction for each."""
        size = self.settings["window"]
        window_lists = [
            [window for piece in self.pieces(reading) for window in windows(*piece, size)] for reading in readings
        ]
        examples = [
            [run.task.parse({"words": reading.words[window.start : window.end]}) for window in doc_windows]
            for reading, doc_windows in zip(readings, window_lists, strict=True)
        ]
        return [list(zip(*pair, strict=True)) for pair in zip(window_lists, ask(run, examples), strict=True)]


def ask(run: Run, examples: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The predictions for each doc's examples, all predicted together."""
    answers = iter(run.predict([example for doc_examples in examples for example in doc_examples]))
    return [[next(answers) for _ in doc_examples] for doc_examples in examples]
