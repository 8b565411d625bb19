"""Energies and nets of images: padding and seams change nothing where they don't reach; filters fit into images."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch.nn import functional as F

import spen_plugins as sp
from spen_e2e.images import Convnet, DeepPrior, FieldOfExperts, Input, non_negative
from spen_e2e.residual import ResidualPrior
from spen_e2e.unrolled import Unrolled
from spen_plugins.loop.mistakes import rehearse
from spen_plugins.loop.recipe import Recipe
from spen_plugins.testing import ToyLabels, check_energy_loss
from spen_plugins.testing.comparing import collate
from tests.e2e.toys import images, make
from tests.loaded import loaded, parsed

load_denoising = partial(loaded, "images.denoising", corpus="sample")
ENERGIES = {"foe": FieldOfExperts, "deep_prior": DeepPrior, "residual_prior": ResidualPrior}
SMALL = {"filters": 3, "size": 3, "weight": 0.3}


def make_energy(name: str, task: sp.Task) -> sp.Energy:
    return make(ENERGIES[name], task, **SMALL).double().eval()


def make_unrolled(task: sp.Task, **fields) -> Unrolled:
    fields = {"steps": 2, "lr": 0.7, "momentum": 0.25, "rates": "learned", **fields}
    return Unrolled(Unrolled.Config(**fields), task, net=make(Input, task)).double().eval()


def make_crops(*sizes: int) -> sp.Task:
    """A task with small training images of several sizes."""
    tasks = {size: load_denoising(crop=size) for size in sizes}
    first = next(iter(tasks.values()))
    examples = first.part("train")
    rng = np.random.default_rng(0)
    first._parts["train"] = [task.augment(e, rng) for task in tasks.values() for e in examples[:4]]
    return first


@pytest.mark.parametrize("name", ["foe", "deep_prior"])
def test_an_energy_by_hand(name: str) -> None:
    """Sums over pixels, (12) to (15), with a convolution written out as sums over shifted images."""
    toy, batch = images(((5, 6),))
    energy = make_energy(name, toy)
    y = torch.rand(2, 2, 5, 6, dtype=torch.float64)

    def softplus(values: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.exp(25 * values)) / 25

    def convolve(planes: torch.Tensor, layer: torch.nn.Conv2d) -> torch.Tensor:
        half = layer.weight.shape[-1] // 2
        padded = F.pad(planes, [half] * 4)
        out = 0 if layer.bias is None else layer.bias.view(-1, 1, 1)
        for i in range(2 * half + 1):
            for j in range(2 * half + 1):
                out = out + torch.einsum("oc,crs->ors", layer.weight[:, :, i, j], padded[:, i : i + 5, j : j + 6])
        return out

    for b in range(2):
        for s in range(2):
            plane = y[b, s].unsqueeze(0)
            if name == "foe":
                a = convolve(plane, energy.experts)
                soft = (torch.log1p(torch.exp(25 * a)) + torch.log1p(torch.exp(-25 * a))) / 50
                prior = soft.sum()
            else:
                hidden = softplus(convolve(softplus(convolve(plane, energy.first)), energy.second))
                prior = torch.einsum("c,crs->", energy.last.weight[0, :, 0, 0], hidden)
            expected = 0.5 * (batch.x.inputs["image"][b] - y[b, s]).square().sum() + 0.3 * prior
            assert energy.at(batch.x)(y)[b, s].item() == pytest.approx(expected.item(), rel=1e-6)


def make_net_and_energy(name: str, task: sp.Task):
    if name == "convnet":
        return make(Convnet, task, filters=3, size=3).double().eval(), None
    return make_unrolled(task), make_energy(name, task)


@pytest.mark.parametrize("name", [*ENERGIES, "convnet"])
def test_an_image_alone_and_beside_larger_ones(name: str) -> None:
    """Outputs, energies and scores of an image don't depend on the padding that its batch gives it."""
    task = load_denoising()
    net, energy = make_net_and_energy(name, task)
    rng = np.random.default_rng(0)
    sizes = ((9, 12), (12, 9), (14, 15), (5, 4))
    examples = [task.parse({"image": rng.uniform(0, 255, s), "clean": rng.uniform(0, 255, s)}) for s in sizes]

    def predict(selected):
        batch = collate(task, selected)
        with torch.no_grad():
            proposal = net(batch.x, None if energy is None else energy.at(batch.x))
            energies = None if energy is None else energy.at(batch.x)(proposal.mean)
        metric = task.metric()
        metric.update(proposal, batch)
        return proposal.mode[:, 0], energies, metric.ratios()[0]

    outputs, energies, scores = predict(examples)
    for i, example in enumerate(examples):
        rows, columns = example.shape
        alone, value, score = predict([example])
        torch.testing.assert_close(outputs[i, :rows, :columns], alone[0], rtol=1e-12, atol=1e-12)
        assert not outputs[i, rows:].any() and not outputs[i, :, columns:].any()
        assert scores[i].item() == pytest.approx(score.item(), abs=1e-9)
        if energy is not None:
            assert energies[i].item() == pytest.approx(value.item(), rel=1e-12)


@pytest.mark.parametrize(("name", "reach"), [("foe", 2), ("deep_prior", 4), ("convnet", 2)])
def test_a_tiled_image_keeps_its_pixels_away_from_seams(name: str, reach: int) -> None:
    """Steps on a large image are those on a small one: energies are sums over pixels, not means, so that step sizes
    learned on crops fit whole images. `reach` is the distance from which a pixel's gradient depends on others."""
    task = load_denoising()
    net, energy = make_net_and_energy(name, task)
    steps = 1 if energy is None else 2
    tile = torch.rand(1, 26, 28, dtype=torch.float64)

    def predict(image):
        x = sp.X({"image": image}, None, 1)
        with torch.no_grad():
            return net(x, None if energy is None else energy.at(x)).mean[0, 0]

    large, small = predict(tile.repeat(1, 2, 3)), predict(tile)
    edge = reach * steps
    inside = small[edge:-edge, edge:-edge]
    for top in (0, 26):
        for left in (0, 28, 56):
            piece = large[top : top + 26, left : left + 28]
            torch.testing.assert_close(piece[edge:-edge, edge:-edge], inside, rtol=0, atol=1e-12)
    assert (large[:26, :28] - small).abs()[-1].max() > 1e-6, "at a seam the neighbours are others"


@pytest.mark.parametrize("name", ENERGIES)
def test_one_step_from_the_noisy_image_moves_by_the_priors_gradient(name: str) -> None:
    """At y = x the data term has no slope."""
    toy, batch = images(((6, 7),))
    energy = make_energy(name, toy)
    net = make_unrolled(toy, steps=1, rates="fixed", lr=0.5)
    y = batch.x.inputs["image"].unsqueeze(1).clone().requires_grad_()
    (slope,) = torch.autograd.grad(energy.prior(y, None).sum(), y)
    mean = net(batch.x, energy.at(batch.x)).mean
    torch.testing.assert_close(mean, (y - 0.5 * energy.log_weight.exp() * slope).detach(), rtol=1e-6, atol=1e-9)


def test_margins_of_images() -> None:
    task = make_crops(7, 9)
    cls, config = parsed("energy_loss", "ssvm", cost="l1")
    check_energy_loss(cls(config, task), make_energy("foe", task), make(Convnet, task, filters=2, size=3), task)


@pytest.mark.parametrize("name", ENERGIES)
def test_loss_augmented_inference_stays_bounded(name: str) -> None:
    """E − Δ has a lowest point with c < 1: far away the data term's curvature 1 outweighs the margin's −c."""
    toy, batch = images(((6, 7),))
    energy = make_energy(name, toy)
    distant = 1e4 * torch.randn(2, 3, 6, 7, dtype=torch.float64)
    values = energy.at(batch.x)(distant) - toy.space.cost(distant, batch.gold, None)
    assert (values > 0).all()


def test_the_trial_before_training_uses_crops() -> None:
    task, shapes = load_denoising(crop=9), []
    model = sp.Model(make_unrolled(task), make_energy("deep_prior", task), None).float()
    model.inference_net.register_forward_pre_hook(lambda _, args: shapes.append(args[0].inputs["image"].shape))
    cls, config = parsed("trainer", "e2e.unroll")
    trainer = cls(config)
    recipe = Recipe(model, task, trainer.stages(model, task), trainer.config, 0)
    rehearse(trainer, recipe, Accelerator(cpu=True))
    assert {tuple(shape[1:]) for shape in shapes} == {(9, 9)}


def test_the_feed_forward_net_has_the_layers_of_the_deep_prior() -> None:
    task = load_denoising(crop=9)
    net, prior = (make(cls, task, filters=3, size=3).double() for cls in (Convnet, DeepPrior))
    net.load_state_dict({name: value for name, value in prior.state_dict().items() if name != "log_weight"})
    x = collate(task, [task.augment(example, np.random.default_rng(0)) for example in task.part("train")[:2]]).x
    image = x.inputs["image"].unsqueeze(1)
    torch.testing.assert_close((image - net(x).mean).flatten(1).sum(-1), prior.prior(image, None))


@pytest.mark.parametrize("cls", [FieldOfExperts, DeepPrior, Convnet])
def test_filters_have_a_middle_and_fit_into_the_images(cls: type) -> None:
    task = load_denoising(crop=5)
    with pytest.raises(sp.ConfigError, match="found size=4; expected an odd number"):
        make(cls, task, size=4)
    with pytest.raises(sp.ConfigError, match=r"size=7; .* within the smallest training image or crop \(5\)"):
        make(cls, task, size=7)
    make(cls, task, size=5)
    make(cls, load_denoising(crop=None), size=39)


def test_filters_of_blocks_fit_into_the_images() -> None:
    with pytest.raises(sp.ConfigError, match=r"size=3, block=2; .* within the smallest .* crop \(5\)"):
        make(ResidualPrior, load_denoising(crop=5))
    make(ResidualPrior, load_denoising(crop=6))


@pytest.mark.parametrize("cls", [FieldOfExperts, DeepPrior, Convnet, Input])
def test_other_tasks_are_rejected(cls: type) -> None:
    with pytest.raises(
        sp.ConfigError, match="requires grayscale images as inputs and outputs; found VectorInputs and LabelSet"
    ):
        make(cls, ToyLabels())


def test_the_weight_starts_at_the_configured_value() -> None:
    assert math.exp(make_energy("foe", load_denoising()).log_weight.item()) == pytest.approx(0.3)


# Energies that are convex in y


@pytest.mark.parametrize("cls", [DeepPrior, FieldOfExperts])
def test_convex_along_segments(cls) -> None:
    """E((1 − s) a + s b) ≤ (1 − s) E(a) + s E(b), wherever the parameters are."""
    task, batch = images()
    fields = {"icnn": True} if cls is DeepPrior else {}
    energy = make(cls, task, filters=4, size=3, weight=5.0, **fields).double()
    bound, s = energy.at(batch.x), torch.linspace(0, 1, 9, dtype=torch.float64)
    for _ in range(20):
        for value in energy.parameters():
            value.data.normal_()
        a, b = torch.randn(2, 2, 1, 6, 7, dtype=torch.float64) * 3
        between = bound(a + s.view(-1, 1, 1) * (b - a))
        ends = bound(a) + s * (bound(b) - bound(a))
        assert (between <= ends + 1e-9 * ends.abs()).all()


def test_unrestricted_weights_are_not_convex() -> None:
    task, batch = images()
    energy = make(DeepPrior, task, filters=4, size=3, weight=50.0).double()
    bound, worst = energy.at(batch.x), 0.0
    for _ in range(20):
        for value in energy.parameters():
            value.data.normal_()
        energy.log_weight.data.fill_(4.0)
        a, b = torch.randn(2, 2, 1, 6, 7, dtype=torch.float64)
        worst = max(worst, float((bound((a + b) / 2) - (bound(a) + bound(b)) / 2).detach().max()))
    assert worst > 0


def test_weights_of_any_sign_are_trained() -> None:
    layer = non_negative(torch.nn.Linear(3, 2))
    raw = layer.parametrizations.weight.original
    assert (raw < 0).any() and torch.equal(layer.weight, raw.abs())
    [gradient] = torch.autograd.grad(layer(torch.ones(3)).sum(), raw)
    assert torch.equal(gradient, raw.sign())
    assert set(dict(layer.named_parameters())) == {"bias", "parametrizations.weight.original"}


def test_the_restricted_prior_begins_where_softplus_bends() -> None:
    """Otherwise the energy would be linear in the first convolution's output, and nothing else could be learned."""
    task, batch = images(sizes=((20, 20),))
    outputs = []
    energy = make(DeepPrior, task, icnn=True)
    energy.second.register_forward_hook(lambda layer, args, value: outputs.append(value))
    energy.double().at(batch.x)(batch.gold)
    assert outputs[0][:, :, 8:12, 8:12].abs().mean() < 2  # away from borders, where fewer values are summed
