"""Inputs and batches, and the kinds of inputs that a task may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

if TYPE_CHECKING:
    from spen_plugins.spaces import Proposal


@dataclass(frozen=True)
class X:
    """The input: everything that may be seen at test time.

    Args:
        inputs: tensors by name; a task and its feature networks agree on the names.
        mask: `(batch, *masked)` boolean, `(batch, token)` for sequences; None if outputs have no padding.
        size: number of examples.
    """

    inputs: dict[str, Tensor]
    mask: Tensor | None
    size: int

    def to(self, device: torch.device | str) -> X:
        return X(
            {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()},
            None if self.mask is None else self.mask.to(device, non_blocking=True),
            self.size,
        )


@dataclass(frozen=True)
class Batch:
    """A batch of examples, with gold outputs apart from inputs, so that a test-time net can't see them.

    Args:
        x: the inputs.
        rows: `(batch,)` indices of the examples in their part.
        gold: `(batch, 1, *variables)`, or None if nothing is annotated; zero in rows without gold.
        labelled: `(batch,)` boolean, the mask of rows with gold.
        weights: `(batch,)`, weights of the examples' losses; None: no example is weighted.
        class_weights: weights of the classes in the net's cross entropy, as `Proposal.weighted_log_prob` takes them;
            None: no class is weighted.
    """

    x: X
    rows: Tensor
    gold: Tensor | None
    labelled: Tensor
    weights: Tensor | None = field(default=None, kw_only=True)
    class_weights: Tensor | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        inputs: Mapping[str, Any],
        mask: Tensor | None,
        gold: Tensor | None,
        labelled: Sequence[bool] | Tensor,
        rows: Sequence[int] | None = None,
        **fields: Any,
    ) -> Self:
        """A batch of examples that a task collates.

        Args:
            inputs, mask: as in `X`.
            gold: zero in rows without gold.
            labelled: for each example, whether it has gold.
            rows: indices of the examples in their part; None: from 0.
            fields: further fields of the batch.
        """
        has_gold = torch.as_tensor(labelled)
        row_numbers = torch.arange(len(has_gold)) if rows is None else torch.as_tensor(rows, dtype=torch.long)
        return cls(
            X(dict(inputs), mask, len(has_gold)), row_numbers, gold if has_gold.any() else None, has_gold, **fields
        )

    def __len__(self) -> int:
        return self.x.size

    def to(self, device: torch.device | str) -> Batch:
        names = ("gold", "weights", "class_weights")
        tensors = {name: value for name in names if (value := getattr(self, name)) is not None}
        fields = {name: value.to(device, non_blocking=True) for name, value in tensors.items()}
        return replace(
            self, x=self.x.to(device), rows=self.rows.to(device), labelled=self.labelled.to(device), **fields
        )

    def weigh(self, loss: Tensor) -> Tensor:
        """A loss of each example, `(batch,)`, times its weight."""
        return loss if self.weights is None else loss * self.weights

    def gold_log_prob(self, proposal: Proposal) -> Tensor:
        """ln q(gold | x), `(batch,)`, with each class's terms times its weight; `gold` is present.

        Raises:
            ConfigError: classes are weighted, and the variables of q are not independent.
        """
        if self.class_weights is None:
            return proposal.log_prob(self.gold)[:, 0]
        return proposal.weighted_log_prob(self.gold, self.class_weights)[:, 0]


@dataclass(frozen=True)
class VectorInputs:
    """Inputs of vectors of fixed size.

    A batch's `X.inputs` holds `"vector"`, `(batch, size)` float; or, if `binary` or `sparse`, the indices of the
    non-zero features: `"indices"` `(total,)` and `"offsets"` `(batch,)`, as in `torch.nn.functional.embedding_bag`,
    and, if `sparse`, their `"values"`, `(total,)` float; all values of binary features are 1.
    """

    size: int
    binary: bool
    sparse: bool = False

    @property
    def listed(self) -> bool:
        """True if a batch holds indices instead of vectors."""
        return self.binary or self.sparse


@dataclass(frozen=True)
class WordInputs:
    """Inputs of sentences.

    A batch's `X.inputs` holds `"words"`, `(batch, token)` word indices (0 padding, 1 unknown); each name in `marks` and
    `columns` as `(batch, token)` value indices; and the tensors of the task's indexers.
    """

    words: Sequence[str]
    marks: Mapping[str, int]
    """Name of each mark of tokens -> its number of values (SRL's `"predicate"`: 1 at the predicate)."""
    columns: Mapping[str, int] = field(default_factory=dict)
    """Name of each extra column of the data (POS, chunks) -> its number of values; 0 padding, 1 unknown."""


@dataclass(frozen=True)
class ArcInputs(WordInputs):
    """Inputs of sentences whose outputs are arcs: a role for each pair of a predicate and a candidate, a span of words.

    A batch's `X.inputs` holds the tensors of `WordInputs` and, with all indices from 0, `"predicate_at"`
    `(batch, predicate)`, each predicate's word; `"candidate_first"` and `"candidate_last"` `(batch, candidate)`, words;
    -1 on their padding. `"pair_predicate"` and `"pair_candidate"` `(batch, pair)` hold each pair's predicate and
    candidate. The mask is `(batch, pair)`; feature networks expect the mask of words instead:
    `X(inputs, inputs["words"] > 0, size)`.
    """

    core: Sequence[str] = ()
    """Roles that a predicate should have once."""


@dataclass(frozen=True)
class ChoiceInputs(WordInputs):
    """Inputs of sentences with a marked word, for which one of several candidates is chosen.

    A batch's `X.inputs` holds the tensors of `WordInputs` and `"candidates"` `(batch, candidate, attribute)`: each
    candidate's attributes as indices (0 padding, 1 unknown, then `attributes` in order), the first above 0. An output
    is one tag, the candidate's index; the mask is `(batch, 1)`, and feature networks expect the mask of words instead:
    `X(inputs, inputs["words"] > 0, size)`.
    """

    attributes: Sequence[str] = ()
    """Known attributes of candidates."""


@dataclass(frozen=True)
class TextInputs:
    """Inputs of whole texts, each encoded as one vector.

    A batch's `X.inputs` holds the tensors of the task's indexers, without padding.
    """

    words: Sequence[str]
    """Words of the training part; others are unknown."""


@dataclass(frozen=True)
class ImageInputs:
    """Inputs of images.

    A batch's `X.inputs` holds `"image"`, `(batch, row, column)` float for one channel and `(batch, channel, row,
    column)` for several, zero on padding. The mask is `(batch, row, column)`, or None if all images of a batch have
    one size.
    """

    channels: int = 1
    smallest: int | None = None
    """Fewest rows or columns of a training image, if known."""
