"""The nets of one experiment in one module, so that every parameter has one name."""

from __future__ import annotations

import torch
from torch import nn

from spen_plugins.batch import X
from spen_plugins.energy import Energy
from spen_plugins.energy_loss import EnergyLoss
from spen_plugins.inference_net import CostNet, InferenceNet
from spen_plugins.spaces import Proposal


class Model(nn.Module):
    """Inference net, energy and energy loss; parameters are named `inference_net.…`, `energy.…`, `energy_loss.…`."""

    def __init__(self, inference_net: InferenceNet, energy: Energy | None, energy_loss: EnergyLoss | None) -> None:
        super().__init__()
        self.inference_net = inference_net
        self.energy = energy
        self.energy_loss = energy_loss
        self.predicts_in: torch.dtype | None = None
        """Dtype of the multiplications of `propose`, if not the weights' own: `torch.bfloat16`."""
        for part in () if energy_loss is None else list(energy_loss.modules()):
            if isinstance(part, CostNet):
                part.bind(inference_net)

    def propose(self, x: X) -> Proposal:
        """The model's proposal for x."""
        bound_energy = self.energy.at(x) if self.inference_net.uses_energy and self.energy is not None else None
        if self.predicts_in is None:
            return self.inference_net(x, bound_energy)
        with torch.autocast(next(self.parameters()).device.type, self.predicts_in):
            return self.inference_net(x, bound_energy)
