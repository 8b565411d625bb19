"""Joint training of an energy and inference nets (Tu & Gimpel 2018; Tu et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field, model_validator

import spen_plugins as sp
from spen_infnet.tag_lm import LanguageModel
from spen_plugins.nn import entropy


class FineTune(sp.Config):
    """Training of the net on the trained energy (Tu & Gimpel 2018; Tu et al. 2020, Sec. 2, the last equation)."""

    epochs: int = Field(10, ge=1)
    """Maximal number of epochs; the epoch with the best validation score is kept."""
    on: Literal["train", "validation", "test"] = "train"
    """Part whose inputs are used. Gold is hidden, except for cross entropy on the training part. With "test" the test
    score is transductive, which the results record."""
    lr: float = Field(1e-4, gt=0)
    """Learning rate; the other settings are those of the net's player, with one update per batch."""
    cross_entropy_weight: float = Field(0.0, ge=0)
    """Weight of cross entropy next to the energy; on the training part only."""

    @model_validator(mode="after")
    def _check_hidden_gold(self) -> FineTune:
        if self.cross_entropy_weight and self.on != "train":
            raise ValueError(f"cross_entropy_weight requires gold, which on={self.on!r} hides; use on='train'")
        return self


class TagLmPretraining(sp.Config):
    """Pretraining of the tag language models on tagged text, after which they are frozen (Tu & Gimpel 2018)."""

    epochs: int = Field(10, ge=1)
    """Maximal number of epochs; the epoch with the best likelihood of the validation part's tags is kept."""
    text: str | None = None
    """Tagged text in the task's format, which may be tagged automatically; null: the training part."""
    lr: float = Field(1e-3, gt=0)
    """Learning rate; the other settings are those of the energy's player, with one update per batch."""


class Joint(sp.Trainer):
    """Alternating training: k updates of the nets (I steps), then one of the energy (E step).

    The nets minimise the energy loss's `net_terms` + cross entropy of A (Tu et al. 2020, Sec. 4).
    Optional stages come before and after: the nets alone on cross entropy (`pretrain_epochs`), tag language models
    alone (`tag_lm`), fine-tuning (`finetune`).
    """

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
        cross_entropy_weight: float = Field(1.0, ge=0)
        """Weight of the test-time net's local cross entropy; 0 for none."""
        per_variable: bool = False
        """If true, cross entropy is the mean over an example's variables instead of their sum."""
        entropy_weight: float = 0.0
        """Weight of the entropy of A's output, summed over variables; a positive weight lowers the entropy."""
        net: sp.Player = sp.Player()
        """The test-time net's player; its `steps` are k, the updates per update of the energy."""
        energy: sp.Player = sp.Player()
        """The energy's player."""
        cost_net: sp.Player | None = None
        """The cost-augmented net's player, which takes its steps after those of A; null: both are updated together, by
        the net's player."""
        same_batch: bool = True
        """If true, the nets' steps use the batch of the energy's step; otherwise each uses a batch of its own, and the
        energy is updated at every k-th batch."""
        first: Literal["net", "energy"] = "net"
        """The first player on a batch. With "energy" and one step each, one pass of the net serves both phases."""
        sampling_dropout: bool = True
        """If true, the nets (and frozen language models) use dropout while the energy learns from the nets' outputs."""
        energy_dropout: bool = False
        """If true, the energy uses dropout while the nets learn from it; by default all see the same function of y."""
        pretrain_epochs: int = Field(0, ge=0)
        """Maximal number of epochs before the joint training, in which A learns from cross entropy alone, with
        `net.steps` updates per batch (one if `same_batch` is false)."""
        pretrain_patience: int | None = Field(None, ge=1)
        """Epochs without a better validation score before that stage ends; null: `patience`."""
        keep_pretrained: bool = False
        """If true, the net of that stage stays the best one until the joint training has a better validation score."""
        tag_lm: TagLmPretraining | None = None
        """Pretrains the energy's tag language models and freezes them; null: they are trained with the energy."""
        finetune: FineTune | None = None
        """Fine-tunes the net to minimise the energy afterwards and keeps the result; null for none."""

        @model_validator(mode="after")
        def _check_stages(self) -> Joint.Config:
            if self.pretrain_epochs and not self.cross_entropy_weight:
                raise ValueError("pretrain_epochs requires cross_entropy_weight above 0: that stage has no other loss")
            if not self.same_batch and self.cost_net is not None and self.cost_net.steps not in (1, self.net.steps):
                raise ValueError(f"same_batch=false requires cost_net.steps=1; found {self.cost_net.steps}")
            return self

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        config, stages = self.config, []
        if config.entropy_weight and not task.space.discrete:
            raise sp.ConfigError("trainer.entropy_weight: outputs that are real numbers have no entropy; use 0")
        frozen = name_tag_lm_parameters(model) if config.tag_lm is not None else ()
        if config.tag_lm is not None:
            stages.append(self._make_tag_lm_stage(model, task, frozen))
        if config.pretrain_epochs:
            phase = self._make_net_phase(("inference_net",), partial(_compute_cross_entropy, config))
            frozen_parts = sp.frozen_except(model, "inference_net")
            epochs, patience = config.pretrain_epochs, config.pretrain_patience or config.patience
            stages.append(sp.Stage("pretrain", (phase,), epochs, frozen=frozen_parts, patience=patience))
        stages.append(self._make_game_stage(model, frozen))
        if config.finetune is not None:
            stages.append(self._make_finetune_stage(model, task))
        return stages

    def protocol(self) -> dict[str, Any]:
        finetune = self.config.finetune
        if finetune is None or finetune.on == "train":
            return {}
        return {"transductive": f"the net was fine-tuned on the inputs (not the outputs) of the {finetune.on} part"}

    def checksums(self) -> dict[str, str]:
        text = self.config.tag_lm.text if self.config.tag_lm is not None else None
        return {} if text is None else {text: sp.sha256(sp.locate(text))}

    def _make_game_stage(self, model: sp.Model, frozen: tuple[str, ...]) -> sp.Stage:
        config = self.config
        loss_learns = bool(sp.loss_parts(model, "nets"))
        is_separate = config.cost_net is not None
        trains = ("inference_net", "energy_loss") if loss_learns and not is_separate else ("inference_net",)
        nets = [self._make_net_phase(trains, partial(_compute_net_loss, config))]
        if is_separate:
            player = self._set_steps(config.cost_net)
            nets.append(sp.cost_net_phase(model, player, frozen_dropout=config.energy_dropout))
        energy = sp.energy_phase(
            config.energy,
            trains=(
                *(f"energy.{name}" for name, _ in model.energy.named_parameters() if f"energy.{name}" not in frozen),
                *sp.loss_parts(model, "energy"),
            ),
            frozen_dropout=config.sampling_dropout,
            every=1 if config.same_batch else config.net.steps,
        )
        phases = (*nets, energy) if config.first == "net" else (energy, *nets)
        keeps_net = config.keep_pretrained and config.pretrain_epochs > 0
        return sp.Stage("joint", phases, config.epochs, frozen=frozen, patience=config.patience, goes_on=keeps_net)

    def _make_net_phase(self, trains: tuple[str, ...], loss: Any, player: sp.Player | None = None) -> sp.Phase:
        player = player or self._set_steps(self.config.net)
        return sp.Phase("inference_net", trains, loss, player, frozen_dropout=self.config.energy_dropout)

    def _set_steps(self, player: sp.Player) -> sp.Player:
        """A net's player on one batch of the joint training."""
        return player if self.config.same_batch else player.model_copy(update={"steps": 1})

    def _make_finetune_stage(self, model: sp.Model, task: sp.Task) -> sp.Stage:
        finetune = self.config.finetune
        player = self.config.net.model_copy(update={"lr": finetune.lr, "steps": 1})
        phase = self._make_net_phase(("inference_net",), partial(_compute_finetune_loss, self.config), player=player)
        return sp.Stage(
            "finetune",
            (phase,),
            finetune.epochs,
            frozen=sp.frozen_except(model, "inference_net"),
            examples=None if finetune.on == "train" else task.part(finetune.on),
            gold=finetune.cross_entropy_weight > 0,
        )

    def _make_tag_lm_stage(self, model: sp.Model, task: sp.Task, parameters: tuple[str, ...]) -> sp.Stage:
        if not parameters:
            raise sp.ConfigError("trainer.tag_lm requires an energy with a tag language model (infnet.tag_lm)")
        config = self.config.tag_lm
        player = self.config.energy.model_copy(update={"lr": config.lr, "steps": 1})
        phase = sp.Phase("tag_lm", parameters, _compute_tag_lm_loss, player)
        frozen = tuple(name for name, _ in model.named_parameters() if name not in parameters)
        examples = keep_tagged(task, task.part("train") if config.text is None else task.read(config.text))
        if not examples:
            raise sp.DataError(
                config.text or "the training part", None, "no tags", "tagged text to train the language model on"
            )
        return sp.Stage("tag_lm", (phase,), config.epochs, frozen=frozen, examples=examples, select=_score_likelihood)


def keep_tagged(task: sp.Task, examples: Sequence[Any], at_once: int = 256) -> Sequence[Any]:
    """The examples with gold; if all have gold, the same sequence, which may be on disk."""
    starts = range(0, len(examples), at_once)
    labelled = [flag for i in starts for flag in task.collate(examples[i : i + at_once]).labelled.tolist()]
    return examples if all(labelled) else [example for example, flag in zip(examples, labelled, strict=True) if flag]


def list_lms(energy: sp.Energy) -> list[LanguageModel]:
    """The tag language models of an energy."""
    return [module for module in energy.modules() if isinstance(module, LanguageModel)]


def name_tag_lm_parameters(model: sp.Model) -> tuple[str, ...]:
    """Names of the tag language models' parameters in the model."""
    ids = {id(parameter) for lm in list_lms(model.energy) for parameter in lm.parameters() if parameter.requires_grad}
    return tuple(name for name, parameter in model.named_parameters() if id(parameter) in ids)


def _compute_cross_entropy(config: Joint.Config, context: sp.Context) -> sp.Terms:
    return {"cross_entropy": config.cross_entropy_weight * sp.cross_entropy(context, config.per_variable)}


def _compute_net_loss(config: Joint.Config, context: sp.Context) -> sp.Terms:
    return _add_terms(dict(sp.net_terms(context)), config.cross_entropy_weight, config, context)


def _compute_finetune_loss(config: Joint.Config, context: sp.Context) -> sp.Terms:
    terms = {"energy": context.batch.weigh(context.energy(context.proposal.mean)[:, 0])}
    return _add_terms(terms, config.finetune.cross_entropy_weight, config, context)


def _add_terms(terms: dict[str, torch.Tensor], weight: float, config: Joint.Config, context: sp.Context) -> sp.Terms:
    """Terms of a net's loss, with cross entropy and the entropy of its relaxed output; a term with weight 0 isn't
    computed."""
    if weight:
        terms["cross_entropy"] = weight * sp.cross_entropy(context, config.per_variable)
    if config.entropy_weight:
        values = entropy(context.proposal.space, context.proposal.mean)[:, 0]
        terms["entropy"] = config.entropy_weight * context.batch.weigh(values)
    return terms


def _compute_tag_lm_loss(context: sp.Context) -> sp.Terms:
    """−ln p(gold) of each language model."""
    batch = context.batch
    lms = enumerate(list_lms(context.model.energy))
    return {f"nll_{i}": batch.weigh(_score_gold(lm, batch)) for i, lm in lms}


def _score_gold(lm: LanguageModel, batch: sp.Batch) -> torch.Tensor:
    """−ln p(gold) `(batch,)`, of both directions together: the energy of gold without the energy's weight."""
    return -sum(terms.sum(-1)[:, 0] for terms in lm.terms(lm.encode(batch.x), batch.gold).values())


def _score_likelihood(model: sp.Model, batches: Sequence[sp.Batch]) -> float:
    """Mean ln p of the gold tag sequences under the language models."""
    labelled_batches = [batch for batch in batches if batch.gold is not None]
    values = [_score_gold(lm, batch)[batch.labelled] for batch in labelled_batches for lm in list_lms(model.energy)]
    return -float(torch.cat(values).mean())
