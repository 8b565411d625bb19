"""Inference net `unrolled`: gradient steps on the energy as a part of the net; the energy learns through them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import spen_plugins as sp
from spen_plugins.nn import Gradient, entropy, gradient_at

_ITERATES = "e2e.iterates"


class Unrolled(sp.InferenceNet):
    """y_T after T gradient steps on E(x, y) from another net's output, y_0 = Init(F(x)) (Belanger et al. 2017, Eq. 10).

    While gradients are recorded, those of the steps are too: a loss of the proposal trains the energy, the rates and
    the net at the start. Otherwise the same steps take no memory. Real numbers have no logits: each method is then
    plain gradient descent.
    """

    uses_energy = True
    iterative = True
    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net"}

    class Config(sp.Config):
        steps: int = Field(10, ge=1, le=1000)
        """T, the number of gradient steps, in training and in prediction."""
        method: Literal["mirror", "logits", "projected"] = "mirror"
        """mirror: y's gradient is subtracted from y's logits (Eq. 7 and 8, which are the same). logits: the ordinary
        gradient in the logits. projected: steps in y and projection (Eq. 6), whose gradient is 0 once a variable is at
        its border."""
        lr: float = Field(1.0, gt=0)
        """Step size; with learned rates the initial one of each step."""
        rates: Literal["fixed", "decayed", "learned"] = "fixed"
        """Step size of step t: lr, lr / √t, or one of its own that is trained, in log space."""
        momentum: float = Field(0.0, ge=0, lt=1)
        """Share of the last step's direction in the next."""
        entropy: float = Field(0.0, ge=0)
        """τ in E(x, y) − τ Σ_i H(y_i), which is minimised instead of the energy (Sec. 4.2)."""
        checkpoint: bool = False
        """If true, training keeps only each step's ends and computes its inside again for the gradient: less memory,
        more time, the same numbers (Sec. 4.3)."""
        tolerance: float = Field(0.0, ge=0)
        """An output whose largest change in a step is below it stands still from then on; when all do, the steps end.
        0: all steps are made."""

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
                "inference_net 'e2e.unrolled' requires inference_net.net, the net whose output it starts from, such as "
                '{"type": "independent"}'
            )
        if config.entropy and not self.space.discrete:
            raise sp.ConfigError(
                f"inference_net.entropy={config.entropy:g}: the outputs are real numbers, which have no entropy; use 0"
            )
        self.net = net
        self.steps = config.steps
        """T; a trainer that trains the net at the start alone sets it to 0 for that time."""
        if config.rates == "learned":
            self.log_rates = nn.Parameter(torch.full((config.steps,), math.log(config.lr)))
        self._twice = False

    @property
    def rates(self) -> Sequence[float | Tensor]:
        """The step size of each of the T steps."""
        lr, kind = self.config.lr, self.config.rates
        if kind == "learned":
            return self.log_rates.exp().unbind()
        return [lr / math.sqrt(t) if kind == "decayed" else lr for t in range(1, self.config.steps + 1)]

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        """Independent variables with the last iterate's logits; see `iterates` for the others. `RunError` if in
        prediction an iterate is NaN or infinite; `ConfigError` if in training the energy has no second derivative in
        y."""
        assert energy is not None
        start = self.net(x, energy if self.net.uses_energy else None)
        device = start.logits.device.type
        if torch.is_autocast_enabled(device):
            # Gradients through steps in half precision have another direction. What the energy keeps of x may be in
            # half precision already, so it is made again.
            energy = energy.energy.at(x)
        with torch.autocast(device, enabled=False):
            places = self._descend(energy, self._place(start), x.mask)
            logits = places if self.config.method != "projected" else [self.space.logits(y, x.mask) for y in places]
            ys = tuple(self.space.relax(one, x.mask) for one in logits) if self.keep_iterates else ()
        proposal = self.space.independent(logits[-1], x.mask, features=start.features, iterates=ys)
        if torch.is_grad_enabled():
            proposal.keep(_ITERATES, lambda: tuple(logits))
        return proposal

    def _place(self, start: sp.Proposal) -> Tensor:
        """Returns the start of the descent: y, or its logits."""
        if self.config.method == "projected":
            return self.space.project(start.mean, start.mask)
        # Dependent variables (a CRF's) have other marginals than their logits tell.
        independent = type(start) is type(self.space.independent(start.logits, start.mask))
        return start.logits if independent else self.space.logits(start.mean, start.mask)

    def _descend(self, energy: sp.BoundEnergy, place: Tensor, mask: Tensor | None) -> list[Tensor]:
        """Places y_0 to y_T of the descent; those after its end are equal to the last."""
        config, recorded = self.config, torch.is_grad_enabled()
        closed = type(energy.energy).gradient is not sp.Energy.gradient
        look = self._make_look(energy, place, mask, closed)
        step, places, moving = Gradient(config.lr, config.momentum), [place], None
        for rate in self.rates[: self.steps]:
            y, _, gradient = look(place)
            if recorded and not closed and not self._twice:
                self._require_second_derivative(energy, y, gradient)
            step.lr = rate
            new = step(place, gradient)
            if config.method == "projected":
                new = self.space.project(new, mask)
            if config.tolerance:
                new, moving = self._stand_still(place, new, mask, moving)
            place = new
            places.append(place)
            if moving is not None and not moving.any():
                break
        places += places[-1:] * (self.steps + 1 - len(places))
        if not recorded and not torch.isfinite(place).all():
            self._raise_divergence(places)
        return places

    def _make_look(self, energy: sp.BoundEnergy, place: Tensor, mask: Tensor | None, closed: bool) -> Callable:
        """A function from a place to y, the objective and its gradient, as `gradient_at`."""
        config, recorded = self.config, torch.is_grad_enabled()
        to_y = self.space.project if config.method == "projected" else self.space.relax

        def objective(y: Tensor) -> Tensor:
            value = energy(y)
            return value - config.entropy * entropy(self.space, y) if config.entropy else value

        if closed and config.method != "logits" and not config.entropy:

            def look(place: Tensor) -> tuple[Tensor, None, Tensor]:
                y = to_y(place, mask)
                return y, None, energy.gradient(y)

        else:
            look = partial(gradient_at, objective, self.space, mask=mask, method=config.method, create_graph=recorded)
        if not (recorded and config.checkpoint and self.steps):
            return look
        # What the energy keeps of x is made outside of the part that is computed again.
        with torch.no_grad(), torch.random.fork_rng([place.device] if place.is_cuda else []):
            energy(place if config.method == "projected" else to_y(place, mask))
        return partial(checkpoint, look, use_reentrant=False)

    def _stand_still(
        self, old: Tensor, new: Tensor, mask: Tensor | None, moving: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The new place, or the old one where a `(batch, sample)` stands still; and what moves from now on."""
        if moving is not None:
            new = torch.where(moving.view(*moving.shape, *[1] * (new.dim() - 2)), new, old)
        with torch.no_grad():
            to_y = self.space.project if self.config.method == "projected" else self.space.relax
            moves = (to_y(new, mask) - to_y(old, mask)).abs().flatten(2).amax(-1) >= self.config.tolerance
        return new, moves

    def _require_second_derivative(self, energy: sp.BoundEnergy, y: Tensor, gradient: Tensor) -> None:
        """Raise `ConfigError` if the gradient of the energy can't be differentiated; once for a net."""
        name = type(energy.energy).__name__
        if not gradient.requires_grad:
            if any(p.requires_grad for p in energy.energy.parameters()):
                raise sp.ConfigError(
                    f"training through gradient steps requires that the energy's gradient in y depends on its "
                    f"parameters; that of {name} does not. Check for detach and operations with a single derivative"
                )
            return
        try:
            torch.autograd.grad(gradient.sum(), y, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            if "not implemented" not in reason and "differentiate twice" not in reason:
                raise
            raise sp.ConfigError(
                f"training through gradient steps requires the energy's second derivative in y, and {name} has none: "
                f"{reason}. Use another energy, or another implementation of that operation"
            ) from error
        self._twice = True

    def _raise_divergence(self, places: Sequence[Tensor]) -> None:
        """Raise the `RunError` that names the step that led to no finite number."""
        first = next(t for t, place in enumerate(places) if not torch.isfinite(place).all())
        if not first:
            raise sp.RunError(f"the output of inference_net.net ({type(self.net).__name__}) is NaN or infinite")
        rate = float(self.rates[first - 1])
        raise sp.RunError(
            f"gradient step {first} of {self.steps}, with step size {rate:.3g}, led to NaN or infinity: the descent "
            "diverges. A lower inference_net.lr or more entropy (for labels and tags) may help"
        )


def iterates(proposal: sp.Proposal) -> tuple[Tensor, ...]:
    """Logits y_0 to y_T, `(batch, 1, *variables)` each, behind a proposal of an `Unrolled` made while gradients are
    recorded; of any other, its own logits alone."""
    return proposal.keep(_ITERATES, lambda: (proposal.logits,))
