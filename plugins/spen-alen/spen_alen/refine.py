"""Refinement of a net's output by a few gradient steps, and the inference net `refine`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

import spen_plugins as sp
from spen_plugins.nn import Descent, minimise


class Refinement(Descent):
    """Settings of the steps from a net's output."""

    steps: int = Field(5, ge=0, le=1000)
    """K, the gradient steps; 0 for none."""
    optimizer: Literal["adam", "gradient"] = "gradient"
    """Optimiser of the steps."""


class Refine(sp.InferenceNet):
    """A net's output after K steps of descent on E(x, y) (ALEN: Pan et al. 2020).

    Losses in training see the proposal of the net itself, with its samples and its cross entropy. With K = 0 the
    prediction is also the net's own.

    Raises:
        ConfigError: there is no net to start from.
    """

    uses_energy = True
    iterative = True
    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net"}
    Config = Refinement

    def __init__(
        self,
        config: Any,
        task: sp.Task,
        features: sp.FeatureNetwork | None = None,
        net: sp.InferenceNet | None = None,
    ) -> None:
        super().__init__(config, task, features)
        if net is None:
            raise sp.ConfigError(
                "inference_net 'alen.refine' requires inference_net.net, the net whose output it refines, such as "
                '{"type": "independent"}'
            )
        self.net = net

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        """Independent variables whose mean is the last iterate, or the iterate of lowest energy (`pick`)."""
        assert energy is not None
        start = self.net(x, energy if self.net.uses_energy else None)
        if not self.config.steps:
            return start
        result = minimise(energy, self.space, start.mean.detach(), x.mask, self.config, self.keep_iterates)
        return self.space.independent(self.space.logits(result.y, x.mask), x.mask, iterates=result.path)

    def training_proposal(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        return self.net.training_proposal(x, energy)
