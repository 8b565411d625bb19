"""Trainer `staged`: potentials of labels, then the global term, then potentials of pairs."""

from __future__ import annotations

from pydantic import Field

import spen_plugins as sp
from spen_gspen.energy import StarGraph
from spen_gspen.gap import Gap
from spen_gspen.mirror import MirrorNet


class Staged(sp.Trainer):
    """The three stages of Graber & Schwing (2019), each with everything else frozen.

    `labels`: features and scores of labels, by cross entropy. `global`: T, by the gap without Δ. `pairs`: potentials of
    pairs, by the gap with Δ. T and the pairs start from 0; the weights before a stage stay the best until validation
    prefers those that it learns.

    Raises:
        ConfigError: energy, energy loss or inference net is not of this plugin.
    """

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
        net_epochs: int = Field(60, ge=0)
        """Maximal number of epochs of stage `labels`; 0: the scores come from `init.energy`."""
        global_epochs: int = Field(30, ge=0)
        """Maximal number of epochs of stage `global`."""
        epochs: int = Field(60, ge=0)
        """Maximal number of epochs of stage `pairs`."""
        net: sp.Player = sp.Player()
        """The player of stage `labels`."""
        energy: sp.Player = sp.Player()
        """The player of the other stages."""
        per_variable: bool = False
        """If true, cross entropy is the mean over an example's variables instead of their sum."""

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        config, loss = self.config, model.energy_loss
        expected = ((model.energy, StarGraph), (loss, Gap), (model.inference_net, MirrorNet))
        if not all(isinstance(part, cls) for part, cls in expected):
            types = ", ".join(type(part).__name__ for part, _ in expected)
            raise sp.ConfigError(
                "trainer 'gspen.staged' requires energy 'gspen.star', energy_loss 'gspen.gap' and inference_net "
                f"'gspen.mirror'; found {types}"
            )

        def compute_label_loss(context: sp.Context) -> sp.Terms:
            return {"cross_entropy": sp.cross_entropy(context, config.per_variable)}

        def compute_gap(context: sp.Context) -> sp.Terms:
            return {"gap": context.batch.weigh(loss.gap(context.energy, context.batch, 0.0))}

        label_parts, global_parts = ("energy.features", "energy.local"), ("energy.measure", "energy.v")
        plan = (
            ("labels", config.net_epochs, sp.Phase("labels", label_parts, compute_label_loss, config.net)),
            ("global", config.global_epochs, sp.Phase("global", global_parts, compute_gap, config.energy)),
            ("pairs", config.epochs, sp.energy_phase(config.energy, ("energy.pairs",))),
        )
        stages: list[sp.Stage] = []
        for name, epochs, phase in plan:
            if epochs:
                fields = {"frozen": _name_others(model, phase.trains), "goes_on": bool(stages)}
                stages.append(sp.Stage(name, (phase,), epochs, patience=config.patience, **fields))
        return stages


def _name_others(model: sp.Model, prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the parameters that are not below one of the prefixes."""
    starts = tuple(f"{prefix}." for prefix in prefixes)
    return tuple(name for name, _ in model.named_parameters() if not f"{name}.".startswith(starts))
