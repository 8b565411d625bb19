"""Prediction for pieces of docs: long pieces are split, and batches are limited by their padded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch

import spen_plugins as sp
from spen_spacy.sharing import join, turns

PADDED = 1024
"""Maximal number of words, or of an encoder's pieces of them, in a batch, padding included: larger batches exceed a
core's caches and take longer per word."""
EXAMPLES = 512
"""Maximal number of examples in a batch."""
Item = TypeVar("Item")


class Run:
    """A predictor of a run folder, or of one that `Predictor.save` wrote.

    With `energy`, predictions have an energy; with `rerank`, it chooses from this number of the net's best outputs.
    `SpenError` as in `spen_plugins.load`; `ConfigError` if the run lacks an energy that is needed.
    """

    def __init__(
        self, folder: Path, device: str = "cpu", energy: bool = False, rerank: int = 0, precision: str = "no"
    ) -> None:
        if (energy or rerank) and sp.RunFolder.open(folder, mean=not rerank).config().get("energy") is None:
            setting = f"rerank={rerank}" if rerank else "energy=True"
            raise sp.ConfigError(
                f"found {setting}, but {folder} has no energy; use a run that was trained and saved with one"
            )
        refine = {"type": "rerank", "k": rerank} if rerank else None
        self.predictor = sp.load(folder, device, refine, precision)
        self.predictor.batch_size = EXAMPLES
        self.task = self.predictor.task
        self._options = {"energy": True} if energy else {}
        nets = [module for module in self.predictor.model.modules() if isinstance(module, sp.FeatureNetwork)]
        self._is_large = any(net.large for net in nets)
        self._encoders = join(self, self.predictor.model, device)

    def save(self, folder: Path, apart: bool) -> None:
        """Writes all that prediction needs, the energy only if it is used; `apart` as in `Predictor.save`."""
        net = self.predictor.model.inference_net
        self.predictor.save(folder, energy=bool(self._options) or net.uses_energy, apart=apart)

    def predict(self, examples: Sequence[Any]) -> list[Any]:
        """The task's predictions, in the examples' order."""
        answers: list[Any] = [None] * len(examples)
        with turns(self._encoders, self), self.predictor.keep_casts():
            for rows in cut_batches([*map(self.task.length, examples)]):
                with self._limit_threads():
                    batch_answers = self.predictor.predict_examples([examples[row] for row in rows], **self._options)
                for row, answer in zip(rows, batch_answers, strict=True):
                    answers[row] = answer
        return answers

    def proposals(self, examples: Sequence[Any]) -> Iterator[tuple[sp.Proposal, sp.Batch, list[int]]]:
        """The net's proposals, batch by batch, with the indices of the examples."""
        with turns(self._encoders, self), self.predictor.keep_casts():
            for rows in cut_batches([*map(self.task.length, examples)]):
                with self._limit_threads():
                    proposals = list(self.predictor.proposals([examples[row] for row in rows]))
                for proposal, batch, indices in proposals:
                    yield proposal, batch, [rows[i] for i in indices]

    def energies(self, proposal: sp.Proposal, batch: sp.Batch) -> list[float]:
        """E(x, y) of each example's decoded output; low is good."""
        with self._limit_threads():
            return self.predictor.energies(proposal, batch)

    @contextmanager
    def _limit_threads(self) -> Iterator[None]:
        """Limits torch to one thread, except for transformers, and restores the number afterwards.

        Several threads gain little on small batches. On busy cores, or in a container with fewer cores than the
        machine, they wait for each other: up to twenty times the duration was measured.
        """
        threads = torch.get_num_threads()
        if self._is_large or threads == 1:
            yield
            return
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def cut_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """All rows once, longest first, in batches of at most `PADDED` words and `EXAMPLES` rows, and at least one row."""
    rows: list[int] = []
    width = 1
    for row in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if rows and (len(rows) == EXAMPLES or (len(rows) + 1) * width > PADDED):
            yield rows
            rows = []
        if not rows:
            width = max(1, lengths[row])
        rows.append(row)
    if rows:
        yield rows


def cut_groups(items: Iterable[Item], measure: Callable[[Item], int], size: int, number: int) -> Iterator[list[Item]]:
    """All items in order, in groups of `number`, or fewer if these together measure `size` or more."""
    group: list[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += measure(item)
        if total >= size or len(group) >= number:
            yield group
            group, total = [], 0
    if group:
        yield group
