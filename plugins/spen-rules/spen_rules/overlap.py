"""The constraint on the arguments of several predicates of a sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, mask_padding, require_tags
from spen_rules.logic import FALSE, Constraint, log_truth, violation


class Spans(NamedTuple):
    """Log truth values about the words of a batch, `(batch, sample, token)`, and about words i < j, `(batch, sample,
    token, token)`."""

    ends: Tensor
    """No argument continues at the word."""
    ends_after: Tensor
    """No argument continues after the word."""
    is_argument: Tensor
    """An argument begins at i and ends with j."""
    goes_on: Tensor
    """An argument continues at all words after i up to j."""
    none_begins: Tensor
    """No argument begins after i up to j."""


class Overlap(Constraint):
    """Arguments of two predicates don't cross: one contains the other, or they are apart (Li et al. 2020).

    "An argument of v is the words i to j" implies, for each other predicate u of the sentence: "no argument of u
    continues at i, or one continues up to j" and "none continues after j, or none begins after i up to j". E(x, y) is
    the sum of the violations over words i < j and over u. An argument's probability is that of its boundaries, whatever
    its role.

    The other predicates are those in the batch; training keeps the predicates of a sentence together. A row's energy
    therefore depends on other rows, unlike that of any other energy. It is 0 for a predicate that is alone.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        if not isinstance(task, sp.SharesSentences):
            raise sp.ConfigError(
                "energy 'rules.overlap' requires one example per predicate, and the task has one per sentence"
            )
        kinds = [[tag[:2] == prefix and tag[2:] != "V" for tag in self.space.tags] for prefix in ("B-", "I-")]
        if not any(kinds[0]):
            raise sp.ConfigError("energy 'rules.overlap' requires tags of arguments, such as B-A0; the task has none")
        task.sentence_indexers()  # so that batches number the sentences, and training keeps their rows together
        self.register_buffer("kinds", torch.tensor(kinds).t().double(), persistent=False)

    def encode(self, x: sp.X) -> tuple[Tensor | None, Tensor]:
        """The mask, and the pairs of rows that share a sentence, `(pair, 2)`."""
        numbers = x.inputs["sentence"]
        shared = numbers.unsqueeze(0) == numbers.unsqueeze(1)
        return x.mask, shared.fill_diagonal_(False).nonzero()

    def forward(self, features: tuple[Tensor | None, Tensor], y: Tensor) -> Tensor:
        mask, pairs = features
        y = at_least_float32(y)
        with torch.autocast(y.device.type, enabled=False):
            p = mask_padding(y @ self.kinds.to(y.dtype), mask)
        spans = self._find_spans(*p.clamp(max=1).unbind(-1))
        first, other = pairs.unbind(1)
        u = Spans(*(part[other] for part in spans))
        start_clause = self._join_either(u.ends.unsqueeze(-1), u.goes_on)
        end_clause = self._join_either(u.ends_after.unsqueeze(-2), u.none_begins)
        clauses = violation(spans.is_argument[first], self.all_of(torch.stack([start_clause, end_clause], -1)))
        return (0 * p.flatten(2).sum(-1)).index_add(0, first, clauses.flatten(2).sum(-1))

    def _find_spans(self, begins: Tensor, goes_on: Tensor) -> Spans:
        length = begins.shape[-1]
        is_after = torch.ones(length, length, dtype=torch.bool, device=begins.device).triu(1)
        ends, log_begins = log_truth(1 - goes_on), log_truth(begins)
        ends_after = torch.nn.functional.pad(ends[..., 1:], (0, 1))

        def accumulate(values: Tensor) -> Tensor:
            """The "and" over the words after i up to j."""
            rows = torch.where(is_after, values.unsqueeze(-2), 0)
            return rows.cumsum(-1).clamp(min=FALSE) if self.config.logic == "product" else rows.cummin(-1).values

        log_goes_on = accumulate(log_truth(goes_on))
        parts = [
            log_begins.unsqueeze(-1).expand_as(log_goes_on),
            log_goes_on,
            ends_after.unsqueeze(-2).expand_as(log_goes_on),
        ]
        is_argument = torch.where(is_after, self.all_of(torch.stack(parts, -1)), FALSE)
        return Spans(ends, ends_after, is_argument, log_goes_on, accumulate(log_truth(1 - begins)))

    def _join_either(self, a: Tensor, b: Tensor) -> Tensor:
        if self.config.logic == "product":
            return log_truth(1 - (1 - a.exp()) * (1 - b.exp()))
        return torch.maximum(a, b)
