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
    the net at the start. Otherwise the same steps need no memory. Real numbers have no logits: each method is then
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
        """T; 0 while a trainer trains only the net at the start."""
        if config.rates == "learned":
            self.log_rates = nn.Parameter(torch.full((config.steps,), math.log(config.lr)))
        self._has_second_derivative = False

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
            # Gradients through steps in half precision have another direction. What the energy stores of x may be in
            # half precision already, so it is computed again.
            energy = energy.energy.at(x)
        with torch.autocast(device, enabled=False):
            places = self._descend(energy, self._find_start(start), x.mask)
            logits = places if self.config.method != "projected" else [self.space.logits(y, x.mask) for y in places]
            outputs = tuple(self.space.relax(values, x.mask) for values in logits) if self.keep_iterates else ()
        proposal = self.space.independent(logits[-1], x.mask, features=start.features, iterates=outputs)
        if torch.is_grad_enabled():
            proposal.keep(_ITERATES, lambda: tuple(logits))
        return proposal

    def _find_start(self, start: sp.Proposal) -> Tensor:
        """Returns the start of the descent, `(batch, 1, *variables)`: y, or its logits."""
        if self.config.method == "projected":
            return self.space.project(start.mean, start.mask)
        # The marginals of dependent variables (a CRF's) differ from those of their logits.
        is_independent = type(start) is type(self.space.independent(start.logits, start.mask))
        return start.logits if is_independent else self.space.logits(start.mean, start.mask)

    def _descend(self, energy: sp.BoundEnergy, place: Tensor, mask: Tensor | None) -> list[Tensor]:
        """Places y_0 to y_T of the descent, `(batch, 1, *variables)` each; those after its end equal the last."""
        config, is_recorded = self.config, torch.is_grad_enabled()
        has_gradient = type(energy.energy).gradient is not sp.Energy.gradient
        evaluate = self._make_evaluation(energy, place, mask, has_gradient)
        step, places, is_moving = Gradient(config.lr, config.momentum), [place], None
        for rate in self.rates[: self.steps]:
            y, _, gradient = evaluate(place)
            if is_recorded and not has_gradient and not self._has_second_derivative:
                self._require_second_derivative(energy, y, gradient)
            step.lr = rate
            next_place = step(place, gradient)
            if config.method == "projected":
                next_place = self.space.project(next_place, mask)
            if config.tolerance:
                next_place, is_moving = self._stand_still(place, next_place, mask, is_moving)
            place = next_place
            places.append(place)
            if is_moving is not None and not is_moving.any():
                break
        places += places[-1:] * (self.steps + 1 - len(places))
        if not is_recorded and not torch.isfinite(place).all():
            self._raise_divergence(places)
        return places

    def _make_evaluation(
        self, energy: sp.BoundEnergy, place: Tensor, mask: Tensor | None, has_gradient: bool
    ) -> Callable:
        """A function from a place to y, the objective and its gradient, like `gradient_at`."""
        config, is_recorded = self.config, torch.is_grad_enabled()
        to_y = self.space.project if config.method == "projected" else self.space.relax

        def objective(y: Tensor) -> Tensor:
            value = energy(y)
            return value - config.entropy * entropy(self.space, y) if config.entropy else value

        if has_gradient and config.method != "logits" and not config.entropy:

            def evaluate(place: Tensor) -> tuple[Tensor, None, Tensor]:
                y = to_y(place, mask)
                return y, None, energy.gradient(y)

        else:
            evaluate = partial(
                gradient_at, objective, self.space, mask=mask, method=config.method, create_graph=is_recorded
            )
        if not (is_recorded and config.checkpoint and self.steps):
            return evaluate
        # What the energy stores of x is computed outside of the checkpoint.
        with torch.no_grad(), torch.random.fork_rng([place.device] if place.is_cuda else []):
            energy(place if config.method == "projected" else to_y(place, mask))
        return partial(checkpoint, evaluate, use_reentrant=False)

    def _stand_still(
        self, place: Tensor, next_place: Tensor, mask: Tensor | None, was_moving: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The next place, or the old one for still samples; and true for moving samples, `(batch, sample)`."""
        if was_moving is not None:
            next_place = torch.where(
                was_moving.view(*was_moving.shape, *[1] * (next_place.dim() - 2)), next_place, place
            )
        with torch.no_grad():
            to_y = self.space.project if self.config.method == "projected" else self.space.relax
            is_moving = (to_y(next_place, mask) - to_y(place, mask)).abs().flatten(2).amax(-1) >= self.config.tolerance
        return next_place, is_moving

    def _require_second_derivative(self, energy: sp.BoundEnergy, y: Tensor, gradient: Tensor) -> None:
        """Raises `ConfigError` if the gradient of the energy can't be differentiated; checked once per net."""
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
        self._has_second_derivative = True

    def _raise_divergence(self, places: Sequence[Tensor]) -> None:
        """Raises a `RunError` with the number of the step that led to NaN or infinity."""
        first = next(t for t, place in enumerate(places) if not torch.isfinite(place).all())
        if not first:
            raise sp.RunError(f"the output of inference_net.net ({type(self.net).__name__}) is NaN or infinite")
        rate = float(self.rates[first - 1])
        raise sp.RunError(
            f"gradient step {first} of {self.steps}, with step size {rate:.3g}, led to NaN or infinity: the descent "
            "diverges. A lower inference_net.lr or more entropy (for labels and tags) may help"
        )


def iterates(proposal: sp.Proposal) -> tuple[Tensor, ...]:
    """Logits y_0 to y_T, `(batch, 1, *variables)` each, of a proposal that an `Unrolled` made while gradients were
    recorded; of any other proposal, its own logits only."""
    return proposal.keep(_ITERATES, lambda: (proposal.logits,))
