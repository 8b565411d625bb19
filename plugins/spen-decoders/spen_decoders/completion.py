"""Trainer `ocd`: teaches labels in no order by the optimal next label after each prefix that the net writes itself."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from spen_decoders.sequence import SequenceNet, find_most
from spen_decoders.sequences import FreeSequences
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
    frozen_except,
)


def find_targets(is_written: Tensor, gold: Tensor) -> Tensor:
    """The optimal policy's distribution over the next label and the end, `(batch, row, label + 1)`: uniform over the
    labels of gold that are not yet written, and the end if there are none (Tsai & Lee 2020, Eq. 10 at temperature 0).

    Args:
        is_written: boolean, `(batch, row, label)`.
        gold: boolean, `(batch, 1, label)`.
    """
    remaining = gold & ~is_written
    targets = torch.cat([remaining, ~remaining.any(2, keepdim=True)], 2).to(torch.get_default_dtype())
    return targets / targets.sum(2, keepdim=True)


def completion_loss(proposal: FreeSequences, gold: Tensor, steps: int) -> Tensor:
    """Σ over the steps of a sequence that the net draws of KL(π* ‖ q), `(batch,)`, up to its end or to `steps` labels.

    Args:
        gold: `(batch, 1, label)`.
    """
    writer, memory = proposal.writer, proposal.memory
    gold_labels = gold[..., proposal.order] > 0.5
    state = writer.begin(memory)
    total, is_open = 0, torch.ones(len(gold), 1, dtype=torch.bool, device=gold.device)
    for _ in range(steps + 1):
        log_p = torch.log_softmax(state.scores, 2)
        targets = find_targets(state.is_written, gold_labels).to(log_p.dtype)
        # A written label is impossible and never a target: its product would be 0 times infinity.
        terms = torch.xlogy(targets, targets) - targets * log_p.masked_fill(targets == 0, 0)
        total = total + torch.where(is_open, terms.sum(2), 0)
        label = torch.distributions.Categorical(logits=log_p.detach(), validate_args=False).sample()
        is_open = is_open & (label < writer.labels)
        if not is_open.any():
            break
        state = writer.write(memory, state, label)
    return total[:, 0]


class Completion(Trainer):
    """Optimal completion distillation for label sets (Sabour et al. 2019; Tsai & Lee 2020): along a sequence that the
    net draws itself, the next label learns the optimal policy, so that no order is imposed and training meets the net's
    own mistakes.

    The loss is a sum over labels, where the released code has a mean; the sum scales the learning rate by their number.
    """

    class Config(TrainerConfig):
        net: Player = Player()
        """The net's player."""
        steps: int | None = Field(None, ge=1)
        """Maximal number of labels of a sequence in training; null: two more than the largest set in training."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        net = model.inference_net
        if not (isinstance(net, SequenceNet) and net.config.order == "none"):
            raise ConfigError(
                "trainer 'decoders.ocd' requires inference_net 'decoders.sequence' with order=none; found "
                f"{type(net).__name__}{' with an order' * isinstance(net, SequenceNet)}"
            )
        if getattr(task.config, "class_weight", None) is not None:
            raise ConfigError(
                "trainer 'decoders.ocd' does not support class_weight; set class_weight=null, or use method=seq2seq"
            )
        self.steps = self.config.steps or find_most(task.space) or len(task.space.labels)
        phase = Phase("inference_net", ("inference_net",), self._compute_terms, self.config.net)
        frozen = frozen_except(model, "inference_net")
        return [Stage("train", (phase,), self.config.epochs, frozen=frozen, patience=self.config.patience)]

    def _compute_terms(self, context: Context) -> Terms:
        batch, proposal = context.batch, context.proposal
        if batch.gold is None:
            return {"completion": 0 * proposal.logits.flatten(1).sum(1)}
        loss = completion_loss(proposal, batch.gold, self.steps)
        return {"completion": batch.weigh(loss * batch.labelled)}
