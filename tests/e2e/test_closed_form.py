"""Energies with a closed-form gradient learn through gradient steps as they do by autograd."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_e2e.images import DeepPrior, FieldOfExperts
from spen_e2e.unrolled import iterates
from tests.e2e.toys import images, make, net_for

PRIORS = {"foe": (FieldOfExperts, {}), "deep_prior": (DeepPrior, {}), "icnn": (DeepPrior, {"icnn": True})}
SIZES = {"mask": ((9, 11), (7, 8)), "no-mask": ((9, 11),)}

every_prior = pytest.mark.parametrize("prior", PRIORS)
every_size = pytest.mark.parametrize("size", SIZES)


def make_case(size: str) -> tuple[sp.Task, sp.Batch]:
    """A batch of two images with a mask, or without one."""
    torch.manual_seed(1)
    task, batch = images(SIZES[size])
    return task, replace(batch, x=replace(batch.x, mask=None)) if size == "no-mask" else batch


def make_energy(prior: str, task: sp.Task, by_autograd: bool = False, **fields: object) -> sp.Energy:
    """An energy with the same weights in each call."""
    cls, defaults = PRIORS[prior]
    if by_autograd:
        cls = type("ByAutograd", (cls,), {"gradient": sp.Energy.gradient})
    torch.manual_seed(0)
    return make(cls, task, **{"filters": 4, "size": 3, "weight": 0.1, **defaults, **fields}).eval()


def compute_gradients(
    energy: sp.Energy, task: sp.Task, batch: sp.Batch, **fields: object
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of all iterates of 4 steps, and its gradient in the energy's parameters and the rates, by name."""
    dtype = energy.log_weight.dtype
    x = replace(batch.x, inputs={"image": batch.x.inputs["image"].to(dtype)})
    net = net_for(task, **{"steps": 4, "rates": "learned", "momentum": 0.3, **fields}).to(dtype)
    proposal = net(x, energy.at(x))
    spaces = [task.space.independent(logits, x.mask) for logits in iterates(proposal)[1:]]
    loss = -sum(space.log_prob(batch.gold.to(dtype)).sum() for space in spaces)
    parameters = dict([*energy.named_parameters(), *net.named_parameters()])
    return loss, dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))


@every_prior
@every_size
def test_an_energy_learns_as_by_autograd(prior: str, size: str) -> None:
    task, batch = make_case(size)
    results = [
        compute_gradients(make_energy(prior, task, by_autograd).double(), task, batch) for by_autograd in (False, True)
    ]
    (loss, closed), (plain_loss, plain) = results
    torch.testing.assert_close(loss, plain_loss, rtol=1e-12, atol=0)
    assert closed.keys() == plain.keys() and len(closed) > 2
    for name, gradient in closed.items():
        assert plain[name].any(), name
        torch.testing.assert_close(gradient, plain[name], rtol=1e-9, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")


@every_prior
@every_size
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_checkpoints_change_no_bit(prior: str, size: str, precision: str) -> None:
    task, batch = make_case(size)
    (loss, plain), (checked_loss, checked) = (
        compute_gradients(make_energy(prior, task, precision=precision), task, batch, checkpoint=checkpoint)
        for checkpoint in (False, True)
    )
    assert torch.equal(loss, checked_loss)
    for name, gradient in plain.items():
        assert torch.equal(gradient, checked[name]), name


@pytest.mark.parametrize("checkpoint", [False, True], ids=["plain", "checkpoint"])
def test_a_step_computes_the_gradient_once_and_twice_with_a_checkpoint(checkpoint: bool) -> None:
    calls = []

    class Counting(DeepPrior):
        def slope(self, y, inside):
            calls.append("slope")
            return super().slope(y, inside)

        def gradient(self, features, y):
            calls.append("gradient")
            return super().gradient(features, y)

    task, batch = make_case("mask")
    compute_gradients(make(Counting, task, filters=2, size=3), task, batch, checkpoint=checkpoint)
    assert calls == ["gradient", "slope"] * (8 if checkpoint else 4)


@every_prior
def test_a_checkpointed_step_saves_images_but_no_filter_outputs(prior: str) -> None:
    """Each step saves a few images for the gradient, whatever the number of filters."""
    task, batch = make_case("mask")
    image = batch.gold.numel() * 4

    def count_saved_bytes(steps: int, checkpoint: bool) -> int:
        sizes: dict[int, int] = {}

        def record(value: Tensor) -> Tensor:
            sizes[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
            return value

        energy = make_energy(prior, task, filters=16)
        with torch.autograd.graph.saved_tensors_hooks(record, lambda value: value):
            compute_gradients(energy, task, batch, steps=steps, checkpoint=checkpoint)
        return sum(sizes.values())

    def count_bytes_per_step(checkpoint: bool) -> float:
        return (count_saved_bytes(9, checkpoint) - count_saved_bytes(3, checkpoint)) / 6

    assert count_bytes_per_step(False) > 16 * image and count_bytes_per_step(True) < 6 * image


@every_prior
@every_size
def test_bfloat16_learns_in_the_same_direction(prior: str, size: str) -> None:
    task, batch = make_case(size)
    (_, plain), (_, half) = (
        compute_gradients(make_energy(prior, task, precision=precision), task, batch)
        for precision in ("float32", "bfloat16")
    )
    for name, gradient in plain.items():
        difference = (half[name] - gradient).norm()
        assert gradient.dtype == half[name].dtype == torch.float32 and difference > 0, name
        assert difference < 0.03 * gradient.norm(), name  # a cosine of at least 0.9995
