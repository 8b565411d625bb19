"""The energy loss: gold has a lower energy than what the net might say, by as much as that is wrong."""

from pydantic import Field
from torch.nn import functional as F

import spen_plugins as sp


class Ranking(sp.EnergyLoss):
    """Mean over samples ŷ of the net of [Δ(ŷ, y) + E(x, y) − E(x, ŷ)]₊."""

    class Config(sp.Config):
        samples: int = Field(10, ge=1)
        """Samples of the net for each word."""

    def terms(self, energy, batch, proposal):
        if batch.gold is None:  # a batch in which no row has gold: 0, with a gradient
            return {"ranking": 0 * energy(proposal.mean)[:, 0]}
        y = proposal.sample(self.config.samples)
        cost = self.space.cost(y, batch.gold, batch.x.mask)  # (batch, sample)
        hinge = F.relu(cost + energy(batch.gold) - energy(y)).mean(1)
        return {"ranking": hinge * batch.labelled}  # 0 in rows without gold
