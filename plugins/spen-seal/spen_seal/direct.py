"""The ranking loss applied to the net itself, without an energy: a baseline for SEAL."""

from __future__ import annotations

from pydantic import Field

import spen_plugins as sp
from spen_seal.contrast import draw_candidates, ranking_loss


class Direct(sp.Trainer):
    """−ln of gold's share in Σ q(y | x) over gold and K samples of the net, plus cross entropy.

    The net's log-probability takes the place of −E in `seal.ranking` (Lee et al. 2021, Sec. 5, "applying ranking loss
    directly").
    """

    class Config(sp.TrainerConfig):
        samples: int = Field(20, ge=1)
        """K, the number of outputs drawn from the net for each example at each update."""
        cross_entropy_weight: float = Field(1.0, ge=0)
        """Weight of the cross entropy."""
        net: sp.Player = sp.Player()
        """The net's player."""

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        c = self.config
        phase = sp.Phase("inference_net", ("inference_net",), self._compute_terms, c.net)
        return [
            sp.Stage("direct", (phase,), c.epochs, frozen=sp.frozen_except(model, "inference_net"), patience=c.patience)
        ]

    def _compute_terms(self, context: sp.Context) -> sp.Terms:
        c, batch, proposal = self.config, context.batch, context.proposal
        terms = {"ranking": proposal.logits.flatten(1).sum(1) * 0}
        if batch.gold is not None:
            y = draw_candidates(batch.gold, proposal, c.samples, "discrete", 1.0)
            terms["ranking"] = batch.weigh(ranking_loss(proposal.log_prob(y)) * batch.labelled)
        if c.cross_entropy_weight > 0:
            terms["cross_entropy"] = c.cross_entropy_weight * sp.cross_entropy(context)
        return terms
