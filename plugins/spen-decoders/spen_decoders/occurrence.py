"""Trainer `laco`: cross entropy, and predictions of labels that occur together, from the labels' vectors."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from spen_decoders.laco import Laco
from spen_plugins import (
    ConfigError,
    Context,
    Model,
    Phase,
    Player,
    Stage,
    Task,
    Terms,
    Trainer,
    TrainerConfig,
    cross_entropy,
    frozen_except,
)


def draw_pairs(gold: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A pair of different labels of each example, `(batch, 2)`; true if both are relevant, and true for examples that
    have a pair, `(batch,)` each.

    The first label is relevant. The second is also relevant with probability one half; with one relevant label, it is
    always irrelevant (the released code fails there). Without a relevant label, or with a single label in all, there is
    no pair.

    Args:
        gold: boolean, `(batch, label)`.
        numbers: uniform, `(batch, 3)`.
    """
    first = _pick(gold, numbers[:, 0])
    other_relevant = gold & ~F.one_hot(first, gold.shape[1]).bool()
    are_relevant = (other_relevant.any(1) & (numbers[:, 1] < 0.5)) | gold.all(1)
    second = _pick(torch.where(are_relevant.unsqueeze(1), other_relevant, ~gold), numbers[:, 2])
    exists = gold.any(1) & (other_relevant.any(1) | ~gold.all(1))
    return torch.stack([first, second], 1), are_relevant, exists


def _pick(allowed: Tensor, number: Tensor) -> Tensor:
    """One of the allowed labels of each row, by a uniform number; any if none is allowed."""
    count = allowed.sum(1)
    rank = (number * count).long().clamp(max=(count - 1).clamp(min=0))
    return ((allowed.cumsum(1) > rank.unsqueeze(1)) & allowed).int().argmax(1)


class Occurrence(Trainer):
    """LACO's multi-task training (Zhang et al. 2021): −ln q(gold | x), whether a pair of labels occurs together
    (PLCP), and which labels occur with a given one (CLCP).

    Pairs are drawn anew in each update. CLCP is the mean over the other labels; examples without a relevant label have
    the cross entropy alone.
    """

    class Config(TrainerConfig):
        net: Player = Player()
        """The net's player."""
        pair_weight: float = Field(1.0, ge=0)
        """Weight of the pairs' loss; 0: none."""
        conditional_weight: float = Field(5.0, ge=0)
        """Weight of the loss of labels given one; 0: none."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        if not isinstance(model.inference_net, Laco):
            raise ConfigError(
                "trainer 'decoders.laco' requires inference_net 'decoders.laco'; found "
                f"{type(model.inference_net).__name__}. Use that net, or trainer 'cross_entropy'"
            )
        phase = Phase("inference_net", ("inference_net",), self._compute_terms, self.config.net)
        frozen = frozen_except(model, "inference_net")
        return [Stage("train", (phase,), self.config.epochs, frozen=frozen, patience=self.config.patience)]

    def _compute_terms(self, context: Context) -> Terms:
        batch, proposal, net = context.batch, context.proposal, context.model.inference_net
        terms = {"cross_entropy": cross_entropy(context)}
        if batch.gold is None:
            return terms
        gold, labels = batch.gold[:, 0] > 0.5, proposal.features
        pairs, are_relevant, exists = draw_pairs(gold, torch.rand(len(gold), 3, device=gold.device))
        exists = exists & batch.labelled
        if self.config.pair_weight:
            loss = F.binary_cross_entropy_with_logits(
                net.score_pairs(labels, pairs), are_relevant.to(labels.dtype), reduction="none"
            )
            terms["pairs"] = batch.weigh(self.config.pair_weight * loss * exists)
        if self.config.conditional_weight:
            logits = net.score_others(labels, pairs[:, 0])
            is_other = ~F.one_hot(pairs[:, 0], gold.shape[1]).bool()
            losses = F.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype), reduction="none") * is_other
            loss = losses.sum(1) / is_other.sum(1).clamp(min=1)
            terms["conditional"] = batch.weigh(self.config.conditional_weight * loss * exists)
        return terms
