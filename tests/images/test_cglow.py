"""The conditional Glow of masks: an exact inverse, densities that integrate to one, a bound, and noise for NCE."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_images.cglow import Cglow, FlowMasks
from spen_images.convolutions import Fcn
from spen_images.flow import Flow, log_normal
from spen_images.flow_noise import BesideFlow, FlowNce
from spen_plugins.testing import ToyImages, ToyLabels, ToyMasks

TASK = SimpleNamespace(space=sp.BinaryGrid(), inputs=sp.ImageInputs(1))


def move(net: torch.nn.Module, deviation: float = 0.1) -> None:
    """Moves the weights away from the start, where nothing depends on the image."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += deviation * torch.randn_like(parameter)


def make_proposal(
    rows: int, columns: int, *, levels: int = 1, is_moved: bool = True, batch: int = 1, **fields
) -> FlowMasks:
    torch.manual_seed(0)
    net = Cglow(Cglow.Config(levels=levels, steps=2, width=8, **fields), TASK).double()
    if is_moved:
        move(net)
    return net(sp.X({"image": torch.randn(batch, rows, columns, dtype=torch.double)}, None, batch))


def make_grids(rows: int, columns: int, values: range) -> Tensor:
    """All grids of these values, `(1, grid, row, column)`."""
    grids = torch.tensor(list(itertools.product(values, repeat=rows * columns)), dtype=torch.double)
    return grids.view(1, -1, rows, columns)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_outputs_are_recovered_from_their_noise(dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    flow = Flow(3, 2, 4, 16).to(dtype)
    move(flow, 0.05)
    encoded = flow.encode(torch.randn(3, 3, 16, 8, dtype=dtype))
    y = (torch.rand(3, 2, 16, 8) < 0.5) + torch.rand(3, 2, 16, 8, dtype=dtype) - 0.5
    noise, log_det = flow(y, encoded)
    restored, restored_log_det = flow.inverse(noise, encoded, (16, 8))
    torch.testing.assert_close(restored, y, rtol=0, atol=tolerance)
    torch.testing.assert_close(restored_log_det, log_det, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("levels", [1, 2])
def test_the_log_determinant_is_that_of_the_jacobian(levels: int) -> None:
    q = make_proposal(4, 4, levels=levels)
    encoded = q.flow.encode(q.image)
    y = torch.rand(1, 1, 4, 4, dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian(lambda y: q.flow(y, encoded)[0], y).view(16, 16)
    torch.testing.assert_close(q.flow(y, encoded)[1][0, 0], torch.linalg.slogdet(jacobian).logabsdet)


def test_images_are_permuted_with_their_densities() -> None:
    q = make_proposal(4, 4, batch=3)
    y, order = torch.rand(3, 2, 4, 4, dtype=torch.double), torch.tensor([2, 0, 1])
    noise, log_det = q.flow(y, q.flow.encode(q.image))
    permuted = q.flow(y[order], q.flow.encode(q.image[order]))
    torch.testing.assert_close(permuted, (noise[order], log_det[order]))
    torch.testing.assert_close(q.map_rows(lambda values: values[order]).mean, q.mean[order])


@pytest.mark.parametrize("is_moved", [False, True], ids=["start", "moved"])
def test_the_density_integrates_to_one(is_moved: bool) -> None:
    """The integral over 2×2 pixels, by importance sampling from a wider Gaussian."""
    q, spread = make_proposal(2, 2, is_moved=is_moved), 0.8
    points = torch.randn(1, 100_000, 4, dtype=torch.double)
    with torch.no_grad():
        noise, log_det = q.flow(0.5 + spread * points.unflatten(2, (2, 2)), q.flow.encode(q.image))
    weights = log_normal(noise) + log_det - log_normal(points) + 4 * math.log(spread)
    assert weights.exp().mean().item() == pytest.approx(1, abs=0.02)


def test_the_density_of_an_extended_image_integrates_to_one() -> None:
    """The squares around all whole numbers fill the plane: a sum of means over squares is an integral."""
    q, squares = make_proposal(1, 2), make_grids(1, 2, range(-4, 6))
    with torch.no_grad():
        log_q = q.dequantise(squares.repeat(1, 1500, 1, 1))[1]
    assert log_q.exp().sum().item() / 1500 == pytest.approx(1, abs=0.02)


def test_the_bound_is_below_the_probability_of_a_mask() -> None:
    """A mask has 2×2 pixels; the midpoints of 12 parts along each axis of its cube give its probability."""
    q, masks, parts = make_proposal(2, 2), make_grids(2, 2, range(2)), 12
    midpoints = (make_grids(2, 2, range(parts)) + 0.5) / parts - 0.5
    encoded = q.flow.encode(q.image)
    with torch.no_grad():
        bound = torch.stack([q.log_prob(masks)[0] for _ in range(400)])
        cubes = []
        for mask in masks[0]:
            noise, log_det = q.flow(mask + midpoints, encoded)
            cubes.append((log_normal(noise) + log_det).exp().mean())
    cubes = torch.stack(cubes)
    assert (bound.mean(0) + 4 * bound.std(0) / math.sqrt(len(bound)) < cubes.log()).all()
    # Points outside all cubes are rounded to masks, too.
    samples = q.sample(20_000)
    shares = (samples[0, :, None] == masks[0]).all(-1).all(-1).double().mean(0)
    assert shares.sum() == 1 and (shares > cubes - 0.02).all()


def test_draws_have_the_density_of_their_noise() -> None:
    q = make_proposal(4, 4)
    y, log_q = q.draw(3)
    noise, log_det = q.flow(y, q.flow.encode(q.image))
    torch.testing.assert_close(log_q, (log_normal(noise) + log_det).detach())
    masks = q.sample(2)
    torch.testing.assert_close(q.space.round(q.dequantise(masks)[0], None), masks)


def test_the_mean_is_that_of_the_same_samples_and_has_their_gradient() -> None:
    q = make_proposal(4, 4, samples=5)
    mean = q.mean
    torch.rand(3)
    assert torch.equal(make_proposal(4, 4, samples=5).mean, mean)
    assert torch.equal((5 * mean).round(), 5 * mean) and torch.equal(q.mode, (mean > 0.5).double())
    [gradient] = torch.autograd.grad(mean.sum(), [q.flow.mean])
    assert gradient.any()
    assert not q.detach().mean.requires_grad and not q.detach().log_prob(mean).requires_grad


@pytest.mark.parametrize("levels", [1, 2])
def test_images_of_the_smallest_size(levels: int) -> None:
    """Several images of the smallest size, whose lowest level has one row and column."""
    size = 2**levels
    q = make_proposal(size, size, levels=levels, batch=2)
    y, log_q = q.draw(3)
    noise, log_det = q.flow(y, q.flow.encode(q.image))
    torch.testing.assert_close(log_q, log_normal(noise) + log_det)


def make_beside_flow(task: object) -> BesideFlow:
    torch.manual_seed(0)
    flow = Cglow(Cglow.Config(levels=1, steps=1, width=8), task)
    net = BesideFlow(sp.Config(), task, None, flow, Fcn(Fcn.Config(filters=2, levels=2, groups=1), task))
    move(net.net)
    return net.double()


def test_an_energy_equal_to_the_noise_distinguishes_nothing() -> None:
    """With E = −ln P_N gold is as probable as each of K samples."""
    task = ToyMasks(padded=False)
    net, rows = make_beside_flow(task), list(task.part("train"))[:3]
    task.parts["train"] = [(image[..., :4, :4], mask[:4, :4]) for image, mask in rows]
    batch = task.collate(task.part("train"))
    x = sp.X({"image": batch.x.inputs["image"].double()}, None, 3)
    batch = sp.Batch(x, batch.rows, batch.gold.double(), batch.labelled)
    proposal = net(x)
    noise = proposal.noise

    def energy(y: Tensor) -> Tensor:
        latent, log_det = noise.flow(y, noise.flow.encode(noise.image))
        return -log_normal(latent) - log_det

    loss = FlowNce(FlowNce.Config(samples=5), task)(energy, batch, proposal)
    torch.testing.assert_close(loss, torch.full_like(loss, math.log(6)))
    assert not any(p.requires_grad for p in net.net.parameters()) and not net.train().net.training
    torch.testing.assert_close(proposal.map_rows(lambda values: values[1:]).noise.mean, noise.mean[1:])


def test_other_outputs_and_nets_are_rejected() -> None:
    with pytest.raises(sp.ConfigError, match="requires masks as outputs, but this task's are real numbers"):
        Cglow(Cglow.Config(), ToyImages())
    with pytest.raises(sp.ConfigError, match="requires masks as outputs; found LabelSet"):
        FlowNce(FlowNce.Config(), ToyLabels())
    task = ToyMasks()
    net = Fcn(Fcn.Config(filters=2, levels=2, groups=1), task)
    with pytest.raises(sp.ConfigError, match="requires two nets"):
        BesideFlow(sp.Config(), task, None, net, net)
    flow = Cglow(Cglow.Config(levels=1, steps=1, width=8), task)
    batch = task.collate(list(task.part("train"))[:2])
    with pytest.raises(sp.ConfigError, match="returns FlowMasks; expected independent pixels"):
        BesideFlow(sp.Config(), task, None, flow, flow)(batch.x)
    with pytest.raises(sp.ConfigError, match="requires samples of a flow"):
        FlowNce(FlowNce.Config(), task)(None, batch, net(batch.x))
