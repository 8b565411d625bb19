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
        for key, least in (("window", 1), ("rerank", 0)):
            value = settings[key]
            if not isinstance(value, int) or value < least:  # spaCy lets "4" through
                raise ConfigError(f"{name}: found {key}={value!r}; expected a whole number, at least {least}")

    def pieces(self, reading: Reading) -> list[tuple[int, int]]:
        """The doc's pieces, according to the setting `sentences`."""
        return reading.pieces(self.settings["sentences"], "doc" if self.reads_whole else "rule")

    def read(self, run: Run, readings: Sequence[Reading]) -> list[list[tuple[Window, Any]]]:
        """The windows of each doc, with a tagging run's prediction for each."""
        size = self.settings["window"]
        places = [[window for piece in self.pieces(r) for window in windows(*piece, size)] for r in readings]
        examples = [
            [run.task.parse({"words": reading.words[window.start : window.end]}) for window in some]
            for reading, some in zip(readings, places, strict=True)
        ]
        return [list(zip(*pair, strict=True)) for pair in zip(places, ask(run, examples), strict=True)]


def ask(run: Run, examples: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The predictions for each doc's examples, all predicted together."""
    answers = iter(run.predict([example for some in examples for example in some]))
    return [[next(answers) for _ in some] for some in examples]
