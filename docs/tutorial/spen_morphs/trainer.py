"""The trainer: the net alone by cross entropy, then net and energy by turns."""

from pydantic import Field

import spen_plugins as sp


class WarmUp(sp.Trainer):
    """Two stages: the net learns from gold; then the energy learns from the net's samples and the net from both."""

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
        net: sp.Player = sp.Player()
        """The net's player."""
        energy: sp.Player = sp.Player()
        """The energy's player."""
        net_epochs: int = Field(5, ge=1)
        """Epochs of the net alone; `epochs` are those of both."""
        weight: float = Field(0.1, ge=0)
        """λ, the weight of the energy in the net's loss."""

    def stages(self, model, task):
        c = self.config
        alone = sp.net_stage(model, task, c.net_epochs, c.net, c.patience)
        phases = (sp.energy_phase(c.energy), sp.Phase("net", ("inference_net",), self.loss, c.net))
        frozen = sp.frozen_except(model, "energy", "inference_net")
        # goes_on: the best epoch may be one of the first stage.
        both = sp.Stage("both", phases, c.epochs, frozen=frozen, patience=c.patience, goes_on=True)
        return [alone, both]

    def loss(self, context):
        return {"cross_entropy": sp.cross_entropy(context), **sp.net_terms(context, self.config.weight)}
