"""Trainer `unroll`: an energy learns through the gradient steps that minimise it (Belanger et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

import spen_plugins as sp
from spen_e2e.unrolled import Unrolled, iterates


class Unroll(sp.Trainer):
    """End-to-end training of an energy and an `e2e.unrolled` net, in up to three stages (Sec. 5).

    `init`: the net at the start of the steps alone, by cross entropy. `clamped`: the energy without its local terms,
    through the steps. `all`: everything, through the steps.
    """

    needs = ("energy",)

    class Config(sp.TrainerConfig):
        epochs: int = Field(60, ge=0)
        """Maximal number of epochs of stage `all`; 0: training ends with stage `clamped`."""
        init_epochs: int = Field(0, ge=0)
        """Maximal number of epochs of stage `init`; 0 also with a net from `init.inference_net`."""
        clamped_epochs: int = Field(0, ge=0)
        """Maximal number of epochs of stage `clamped`."""
        clamp: list[str] | None = None
        """Prefixes of the parameters that are held in stage `clamped`; null: the net at the start, and the energy's
        parameters with `features` or `local` in their names."""
        copies: dict[str, str] = Field(default={})
        """Prefix of parameters -> prefix of parameters of which they are a copy, once, after stage `init`: the energy's
        local terms begin as the pretrained net, {"energy.features": "inference_net.net.features", "energy.local":
        "inference_net.net.output"}."""
        iterates: Literal["all", "last"] = "all"
        """The loss is of each iterate y_t, with weight 1 / (T − t + 1), divided by T (Eq. 9), or of the last alone."""
        per_variable: bool = False
        """If true, an iterate's loss is the mean over an example's variables instead of their sum."""
        net: sp.Player = sp.Player()
        """The player of stage `init`, with one update per batch."""
        energy: sp.Player = sp.Player()
        """The player of the other stages, which moves the energy, the net at the start and the rates. Its `groups` may
        give the energy's local terms ("features", "local") and the net at the start ("net") lower rates."""

        @model_validator(mode="after")
        def _check_epochs(self) -> Unroll.Config:
            if not self.epochs and not self.clamped_epochs:
                raise ValueError("found epochs=0 and clamped_epochs=0; expected one above 0 to train the energy")
            return self

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        config, net = self.config, model.inference_net
        if not isinstance(net, Unrolled):
            raise sp.ConfigError(
                "trainer 'e2e.unroll' requires an inference net with steps that keep their gradients; found "
                f"{type(net).__name__}. Use inference_net 'e2e.unrolled'"
            )
        names = [name for name, _ in model.named_parameters()]
        start = partial(_copy_parameters, config.copies)
        _pair_copies(config.copies, model)
        stages = []
        if config.init_epochs and any(True for _ in net.net.parameters()):
            init_stage = sp.net_stage(
                model, task, config.init_epochs, config.net, config.patience, per_variable=config.per_variable
            )
            stages.append(replace(init_stage, name="init", set=partial(_set_steps, 0)))
        if config.clamped_epochs:
            held_names = (
                _find_below(names, config.clamp, "trainer.clamp") if config.clamp is not None else _find_local(names)
            )
            stages.append(self._make_stage(model, "clamped", config.clamped_epochs, held_names, start))
            start = None
        if config.epochs:
            # Both stages predict by the same steps, so that their scores are comparable.
            stages.append(replace(self._make_stage(model, "all", config.epochs, (), start), goes_on=start is None))
        return stages

    def _make_stage(self, model: sp.Model, name: str, epochs: int, held_names: tuple[str, ...], start: Any) -> sp.Stage:
        """A stage that trains all parameters that are not held, through the steps."""
        other_parts = sp.frozen_except(model, "energy", "inference_net")
        trained = tuple(
            key
            for key, _ in model.named_parameters()
            if key.split(".")[0] in ("energy", "inference_net") and key not in held_names
        )
        if not trained:
            raise sp.ConfigError(
                f"stage {name!r} has nothing to train: trainer.clamp freezes all parameters; set clamped_epochs=0, or "
                "list fewer prefixes"
            )
        phase = sp.Phase("energy", trained, self._compute_terms, self.config.energy, measures=self._measure)
        return sp.Stage(
            name,
            (phase,),
            epochs,
            frozen=(*other_parts, *held_names),
            start=start,
            set=partial(_set_steps, None),
            patience=self.config.patience,
        )

    def _compute_losses(self, context: sp.Context) -> list[Tensor]:
        """−ln q(gold) of each iterate, the start first, `(batch,)` each; 0 in rows without gold."""
        batch, proposal = context.batch, context.proposal
        if batch.gold is None:
            return [0 * proposal.logits.flatten(1).sum(1)] * 2  # with a graph: it may be the whole loss
        weights = batch.labelled.to(proposal.logits.dtype)
        if self.config.per_variable:
            weights = weights / proposal.space.size(batch.gold, batch.x.mask)[:, 0]
        return [
            batch.weigh(-batch.gold_log_prob(proposal.space.independent(logits, batch.x.mask)) * weights)
            for logits in iterates(proposal)
        ]

    def _compute_terms(self, context: sp.Context) -> sp.Terms:
        """Eq. 9, or the last iterate's loss."""
        losses = self._compute_losses(context)[1:]
        if self.config.iterates == "last":
            return {"last": losses[-1]}
        steps = len(losses)
        return {"iterates": sum(loss / (steps - t) for t, loss in enumerate(losses)) / steps}

    def _measure(self, context: sp.Context) -> sp.Terms:
        """The loss at the start and at the end of the steps, and learned step sizes."""
        with torch.no_grad():
            losses, net = self._compute_losses(context), context.model.inference_net
            measures = {"start": losses[0], "end": losses[-1]}
            if net.config.rates == "learned":
                measures |= {f"rate_{t}": rate.expand(len(context.batch)) for t, rate in enumerate(net.rates, 1)}
        return measures


def _set_steps(steps: int | None, model: sp.Model) -> None:
    """Sets the number of steps, None for the config's; with 0 the proposal is that of the net at the start."""
    net = model.inference_net
    net.steps = net.config.steps if steps is None else steps


def _find_below(names: Iterable[str], prefixes: Iterable[str], setting: str) -> tuple[str, ...]:
    """The names that equal one of the prefixes or are below one; `ConfigError` if a prefix has none."""
    names, selected = list(names), []
    for prefix in prefixes:
        matches = [name for name in names if name == prefix or name.startswith(prefix + ".")]
        if not matches:
            parts = [name.split(".") for name in names]
            name_prefixes = {".".join(part[: i + 1]) for part in parts for i in range(len(part))}
            raise sp.ConfigError(
                f"{setting}: no parameter's name begins with {prefix!r}.{sp.did_you_mean(prefix, name_prefixes)} Names "
                f"begin with: {', '.join(sorted(name for name in name_prefixes if name.count('.') == 1))}"
            )
        selected += [name for name in matches if name not in selected]
    return tuple(selected)


def _find_local(names: Iterable[str]) -> tuple[str, ...]:
    """Names of the parameters that are held by default: the net at the start, and the energy's local terms."""
    return tuple(
        name
        for name in names
        if name.startswith("inference_net.net.")
        or (name.startswith("energy.") and {"features", "local"} & set(name.split(".")))
    )


def _pair_copies(copies: dict[str, str], model: sp.Model) -> list[tuple[Tensor, Tensor]]:
    """Pairs of a parameter and its source; `ConfigError` if a prefix has no parameters, or if names or shapes of copies
    and sources differ."""
    params = dict(model.named_parameters(remove_duplicate=False))
    pairs = []
    for prefix, source_prefix in copies.items():
        _find_below(params, [source_prefix], "trainer.copies")
        for name in _find_below(params, [prefix], "trainer.copies (set it to {} for an energy without such parts)"):
            source = source_prefix + name.removeprefix(prefix)
            if source not in params or params[name].shape != params[source].shape:
                problem = f"has shape {tuple(params[source].shape)}" if source in params else "does not exist"
                raise sp.ConfigError(
                    f"trainer.copies: {name} of shape {tuple(params[name].shape)} cannot be a copy of {source}, which "
                    f"{problem}. Name another source, or set trainer.copies={{}}"
                )
            pairs.append((params[name], params[source]))
    return pairs


def _copy_parameters(copies: dict[str, str], model: sp.Model) -> None:
    with torch.no_grad():
        for target, source in _pair_copies(copies, model):
            target.copy_(source)
