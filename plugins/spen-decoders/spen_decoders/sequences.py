"""The distribution over label sets that are written as sequences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from spen_decoders.search import Best, Walk, find_sequences, log_prob, sample, search
from spen_decoders.writer import Memory, Writer
from spen_plugins import DependentLabels
from spen_plugins.nn import take_vectors


@dataclass(frozen=True)
class LabelSequences(DependentLabels):
    """q(y | x) = Π_t q(label_t | x, labels before), with an end; each set has one sequence, its labels in order.

    `logits` are the scores of the first label. `mode` and `k_best` are those of beam search. `mean` is that of
    `samples` sequences, drawn by fixed numbers that are the same for each x; it has a gradient. `log_prob` takes sets:
    a relaxed y stands for its labels above 1/2. `rsample` and `perturb` are those of the independent labels with this
    mean. At temperature T all scores are divided by T, step by step.

    Args:
        writer: the writer of the labels, which have numbers in the order of writing.
        memory: the text.
        order: the label of each number, `(label,)`.
        temperature: T.
        beam: width of beam search.
        samples: number of sequences behind `mean`.
        steps: labels of a sequence after which samples and search end it; by default one more than there are labels,
            so that none is cut.
    """

    writer: Writer | None = None
    memory: Memory | None = None
    order: Tensor | None = None
    temperature: float = 1.0
    beam: int = 8
    samples: int = 64
    steps: int | None = None

    def log_prob(self, y: Tensor) -> Tensor:
        """ln q(y | x); for labels in no order a lower bound, the sequence with the frequent ones first."""
        sequences = find_sequences(y[..., self.order] > 0.5)
        # A detached proposal has no gradients, although the writer has.
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.logits.requires_grad):
            return log_prob(self.writer, self.memory, sequences, self.temperature)

    @cached_property
    def mean(self) -> Tensor:
        with self.restore_grad_mode():
            return self._sort_back(self._walk_fixed().mean.clamp(max=1)).unsqueeze(1)

    def sample(self, n: int) -> Tensor:
        numbers = 1 - torch.rand(self.logits.shape[0], n, self._steps, device=self.logits.device)  # above 0
        with torch.no_grad():
            walk = sample(self.writer, self.memory, numbers, self.temperature)
            return self._sort_back(walk.sets).to(self.logits.dtype)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The best of the sets that beam search finds, at a width of at least `beam`."""
        with torch.no_grad():
            best = self._search(max(k, self.beam))
            sets, log_q = self._join(best)
            if sets.shape[1] < k:
                missing = k - sets.shape[1]
                sets = torch.cat([sets, sets[:, :1].expand(-1, missing, -1)], 1)
                log_q = torch.nn.functional.pad(log_q, (0, missing), value=-torch.inf)
            sets, log_q = sets[:, :k], log_q[:, :k]
            sets = torch.where(log_q.unsqueeze(2) > -torch.inf, sets, sets[:, :1])
            return self._sort_back(sets).to(self.logits.dtype), log_q

    def tempered(self, temperature: float) -> LabelSequences:
        return replace(self, temperature=self.temperature * temperature, _kept={})

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> LabelSequences:
        memory = Memory(*map(change, self.memory))
        device = memory.vectors.device
        writer = self.writer
        if next(writer.parameters()).device != device:
            writer = copy.deepcopy(writer).to(device)
        return replace(super().map_rows(change), writer=writer, memory=memory, order=self.order.to(device))

    def detach(self) -> LabelSequences:
        return replace(super().detach(), memory=Memory(*(part.detach() for part in self.memory)))

    @property
    def _steps(self) -> int:
        return self.logits.shape[2] + 1 if self.steps is None else self.steps

    def _sort_back(self, values: Tensor) -> Tensor:
        """Values by number, `(…, label)` -> by label."""
        return values[..., self.order.argsort()]

    def _search(self, width: int) -> Best:
        return self.keep(
            ("beam", width), lambda: search(self.writer, self.memory, width, self._steps, self.temperature)
        )

    def _join(self, best: Best) -> Best:
        """The sequences as sets, which all differ here."""
        return best

    def _walk_fixed(self) -> Walk:
        """Samples by numbers that don't depend on x; the first label's numbers are evenly spaced."""
        n = self.samples
        generator = torch.Generator().manual_seed(0)
        numbers = 1 - torch.rand(1, n, self._steps, generator=generator)
        numbers[..., 0] = (torch.arange(n) + 0.5) / n
        return sample(self.writer, self.memory, numbers.to(self.logits.device), self.temperature)


@dataclass(frozen=True)
class FreeSequences(LabelSequences):
    """Labels in any order, so that a set has many sequences: `log_prob` is that of one of them, a lower bound, and the
    k best sets have the sum over their sequences that beam search finds."""

    exact: ClassVar[bool] = False

    def _join(self, best: Best) -> Best:
        y = best.sets.to(best.log_q.dtype)
        sizes, overlaps = y.sum(2), y @ y.transpose(1, 2)
        is_equal = sizes.unsqueeze(1) + sizes.unsqueeze(2) - 2 * overlaps < 0.5
        log_q = torch.logsumexp(best.log_q.unsqueeze(1).masked_fill(~is_equal, -torch.inf), 2)
        log_q = log_q.masked_fill(is_equal.tril(-1).any(2), -torch.inf)
        log_q, place = log_q.sort(1, descending=True)
        return Best(take_vectors(best.sets, place), log_q)
