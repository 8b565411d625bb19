"""Samples of a flow as noise from which an energy of masks learns: inference net `beside_flow`, loss `flow_nce`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_images.cglow import Cglow, FlowMasks


class BesideFlow(sp.InferenceNet):
    """A net that predicts and learns, and beside it a fixed flow, whose samples are the noise of `images.flow_nce`.

    `init.inference_net` names the run of the flow; the net that predicts starts anew.

    Raises:
        ConfigError: a net is missing, or `net` is not a flow.
    """

    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net", "predictor": "inference_net"}

    def __init__(
        self,
        config: Any,
        task: sp.Task,
        features: sp.FeatureNetwork | None = None,
        net: sp.InferenceNet | None = None,
        predictor: sp.InferenceNet | None = None,
    ) -> None:
        super().__init__(config, task, features)
        if not isinstance(net, Cglow) or predictor is None:
            raise sp.ConfigError(
                "inference_net 'images.beside_flow' requires two nets: net, of type images.cglow with the weights of "
                "init.inference_net=RUN, and predictor, such as images.fcn"
            )
        # Under this name the weights of a run of the flow alone are those of the inner net.
        self.net, self.predictor = net, predictor
        self.net.requires_grad_(False)

    def train(self, mode: bool = True) -> BesideFlow:
        """The flow stays in evaluation mode."""
        super().train(mode)
        self.net.eval()
        return self

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        prediction = self.predictor(x, energy)
        if type(prediction) is not sp.IndependentPixels:
            raise sp.ConfigError(
                f"inference_net.predictor returns {type(prediction).__name__}; expected independent pixels (images.fcn)"
            )
        fields = {"features": prediction.features, "noise": self.net(x)}
        return PixelsBesideFlow(self.space, prediction.logits, x.mask, **fields)


@dataclass(frozen=True)
class PixelsBesideFlow(sp.IndependentPixels):
    """Independent pixels, and beside them a flow's distribution, for losses that contrast gold with its samples."""

    noise: FlowMasks | None = None

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> PixelsBesideFlow:
        return replace(super().map_rows(change), noise=self.noise.map_rows(change))


class FlowNce(sp.EnergyLoss):
    """NCE ranking of gold with uniform noise against unrounded samples of a flow: s = −E(x, y) − ln P_N(y | x), where
    P_N is the exact density of both (Ma & Collins 2018; Lee et al. 2022, Eq. 8 and 9, with another P_N).

    −E learns the log-density of masks with noise, up to a constant for each x. P_N is that of inference net
    `images.beside_flow`.
    """

    class Config(sp.Config):
        samples: int = Field(20, ge=1)
        """K, the number of samples of the flow for each example."""

    config: Config

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, sp.BinaryGrid):
            raise sp.ConfigError(
                f"energy_loss 'images.flow_nce' requires masks as outputs; found {type(task.space).__name__}"
            )

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if not isinstance(proposal, PixelsBesideFlow):
            raise sp.ConfigError(
                "energy_loss 'images.flow_nce' requires samples of a flow; use inference_net 'images.beside_flow' "
                "(masks method=nce_cglow)"
            )
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        with torch.no_grad():
            pairs = proposal.noise.dequantise(batch.gold), proposal.noise.draw(self.config.samples)
            y, log_noise = (torch.cat(parts, 1) for parts in zip(*pairs, strict=True))
        scores = -energy(y) - log_noise
        return (scores.logsumexp(1) - scores[:, 0]) * batch.labelled
