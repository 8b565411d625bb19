"""The multi-label energy of SPEN and SEAL."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.nn import MANY_LABELS, LazyScores, at_least_float32, lazy_scores, local_layer, local_sum


class Labels(sp.Energy):
    """E(x, y) = −Σ_i y_i b_iᵀ T_E(x) − vᵀ softplus(M y + c) (Lee et al. 2022, Eq. 2; Belanger & McCallum 2016).

    The signs are a convention here (all parameters are free). As in the released code M has a bias c, the b_i
    have none, and v is drawn from N(0, 2 / hidden).
    """

    uses_features = True
    takes_sparse = True

    class Config(sp.Config):
        hidden: int = Field(200, ge=1)
        """Rows of M: the number of measurements of a label set in the global energy."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(self.space, sp.LabelSet):
            raise sp.ConfigError(
                f"energy 'seal.labels' requires label sets as outputs; found {type(self.space).__name__}. "
                "For tag sequences, use seal.self_attention, core.linear_chain or core.local"
            )
        self.local = local_layer(self)
        self.measure = nn.Linear(self.space.shape[-1], config.hidden)
        if self.space.shape[-1] >= MANY_LABELS:
            # The (hidden, label) matrix, stored label by label: sparse labels sum contiguous rows.
            self.measure.weight = nn.Parameter(self.measure.weight.detach().t().contiguous().t())
        self.v = nn.Parameter(torch.randn(config.hidden) * math.sqrt(2 / config.hidden))

    def encode(self, x: sp.X) -> Tensor | LazyScores:
        """b_iᵀ T_E(x), `(batch, label)`, or its factors if there are many labels."""
        return lazy_scores(self, x)

    def forward(self, features: Tensor | LazyScores, y: Tensor | sp.SparseLabels) -> Tensor:
        return -local_sum(features, y) - self.sum_measurements(y)

    def global_energy(self, y: Tensor | sp.SparseLabels) -> Tensor:
        """The part of E that couples labels and does not depend on x, −vᵀ softplus(M y + c), `(batch, sample)`."""
        return -self.sum_measurements(y)

    def sum_measurements(self, y: Tensor | sp.SparseLabels) -> Tensor:
        """vᵀ softplus(M y + c), `(batch, sample)`: one product for all rows or, for sparse labels, sums of columns of
        M."""
        if isinstance(y, sp.SparseLabels):
            rows = y.vectors(self.measure.weight.t().contiguous()) + self.measure.bias
        else:
            rows = self.measure(y.reshape(-1, y.shape[-1]))
        with torch.autocast(self.v.device.type, enabled=False):
            return F.linear(F.softplus(at_least_float32(rows)), self.v.unsqueeze(0)).view(y.shape[:2])
