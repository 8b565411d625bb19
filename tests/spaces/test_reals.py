"""Real-valued outputs on a grid: numbers by hand, padding along both axes, and every kind of inference over them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spen_plugins as sp
from spen_plugins.builtin.losses.basic import Dvn, Ssvm
from spen_plugins.builtin.nets.choosers import Rerank
from spen_plugins.errors import ConfigError
from spen_plugins.inference.descent import Descent, minimise, starts
from spen_plugins.inference.gbi import Gbi
from spen_plugins.nn import local_layer, margin_cost
from spen_plugins.registry import Registry
from spen_plugins.spaces import RealGrid
from spen_plugins.testing import ToyImages

SPACE = RealGrid(std=2.0, cost_weight=0.5)
MASK = torch.tensor([[[True, True, False], [True, True, False]], [[True] * 3, [False] * 3]])
"""An image of 2 x 2 and one of 1 x 3."""
Y = torch.tensor([[[1.0, 2, 9], [3, -1, 9]], [[0.5, -2, 1], [9, 9, 9]]], dtype=torch.float64).unsqueeze(1)
GOLD = torch.tensor([[[0.0, 2, 7], [1, 1, 7]], [[0.5, 0, 0], [7, 7, 7]]], dtype=torch.float64).unsqueeze(1)
SQUARES = torch.tensor([[1.0 + 0 + 4 + 4], [0.0 + 4 + 1]], dtype=torch.float64)


class Quadratic(sp.Energy):
    """E(x, y) = ½ ‖x − y‖²."""

    def encode(self, x):
        return x.inputs["image"].unsqueeze(1), x.mask

    def forward(self, features, y):
        image, mask = features
        values = 0.5 * (y - image).square()
        return (values if mask is None else values * mask.unsqueeze(1)).flatten(2).sum(-1)


class Echo(sp.InferenceNet):
    """The noisy image."""

    def forward(self, x, energy=None):
        return self.space.independent(x.inputs["image"].unsqueeze(1), x.mask)


def bind_energy(task, examples):
    """The quadratic energy of these examples, and their batch, in float64."""
    batch = task.collate(examples)
    x = sp.X({"image": batch.x.inputs["image"].double()}, batch.x.mask, batch.x.size)
    return Quadratic(sp.Config(), task).at(x), sp.Batch(x, batch.rows, batch.gold.double(), batch.labelled)


def test_cost_score_and_log_probability_by_hand():
    torch.testing.assert_close(SPACE.cost(Y, GOLD, MASK), 0.25 * SQUARES)
    counts = torch.tensor([[4.0], [3.0]], dtype=torch.float64)
    torch.testing.assert_close(SPACE.size(Y, MASK), counts)
    torch.testing.assert_close(SPACE.score(Y, GOLD, MASK), 1 / (1 + SQUARES / counts / 4))
    torch.testing.assert_close(SPACE.independent(GOLD, MASK).log_prob(Y), -SQUARES / 8)
    for cost, expected in (("l1", 0.25 * SQUARES), ("mean_l1", 0.25 * SQUARES / counts)):
        torch.testing.assert_close(margin_cost(SPACE, Y, GOLD, MASK, cost), expected)
    assert SPACE.size(Y, None).tolist() == [[6.0], [6.0]]
    torch.testing.assert_close(SPACE.cost(Y, GOLD, None)[:, 0], 0.25 * (Y - GOLD).square().sum((1, 2, 3)))


def test_nothing_is_relaxed_projected_or_rounded():
    q = SPACE.independent(Y, MASK)
    for y in (q.mean, q.mode, *(f(Y, MASK) for f in (SPACE.relax, SPACE.project, SPACE.round, SPACE.logits))):
        assert torch.equal(y, Y * MASK.unsqueeze(1))
        assert torch.equal(SPACE.relax(y, None), y)
    assert not SPACE.discrete and sp.LabelSet.discrete and sp.TagSequence.discrete


def test_samples_are_gaussian():
    q = SPACE.independent(Y, MASK)
    for samples, std in ((q.sample(20_000), 2.0), (q.rsample(20_000, 0.5), 1.0), (q.perturb(20_000, 3.0), 3.0)):
        inside = MASK.unsqueeze(1)
        assert samples.shape == (2, 20_000, 2, 3) and not samples[~inside.expand_as(samples)].any()
        # The error of a mean of 20000 is 0.007 deviations, that of a deviation 0.005.
        torch.testing.assert_close(samples.mean(1, keepdim=True)[inside], Y[inside], atol=0.05 * std, rtol=0)
        torch.testing.assert_close(samples.std(1, keepdim=True)[inside].mean().item(), std, atol=0.03 * std, rtol=0)


def test_gradients():
    y, logits = Y.clone().requires_grad_(), GOLD.clone().requires_grad_()

    def sample(logits):
        torch.manual_seed(0)
        return SPACE.independent(logits, MASK).rsample(2, 0.5)

    assert torch.autograd.gradcheck(lambda y: SPACE.cost(y, GOLD, MASK), (y,))
    assert torch.autograd.gradcheck(lambda y: SPACE.score(y, GOLD, MASK), (y,))
    assert torch.autograd.gradcheck(lambda y, q: SPACE.independent(q, MASK).log_prob(y), (y, logits))
    assert torch.autograd.gradgradcheck(lambda y, q: SPACE.independent(q, MASK).log_prob(y), (y, logits))
    assert torch.autograd.gradcheck(sample, (logits,))


@pytest.mark.parametrize(("row", "rows", "columns"), [(0, 2, 2), (1, 1, 3)])
def test_padding_changes_no_values(row, rows, columns):
    y, gold = (values[row : row + 1, :, :rows, :columns] for values in (Y, GOLD))
    for single, padded in (
        (SPACE.cost(y, gold, None), SPACE.cost(Y, GOLD, MASK)),
        (SPACE.score(y, gold, None), SPACE.score(Y, GOLD, MASK)),
        (SPACE.size(y, None), SPACE.size(Y, MASK)),
        (SPACE.independent(gold).log_prob(y), SPACE.independent(GOLD, MASK).log_prob(Y)),
    ):
        torch.testing.assert_close(single, padded[row : row + 1])


def test_seeded_random_starts_do_not_depend_on_padding():
    short, long, wide = (torch.zeros(2, 1, *y) for y in ((3, 4), (5, 4), (3, 6)))
    masks = [torch.ones(2, *y.shape[2:], dtype=torch.bool) for y in (short, long, wide)]
    a, b, c = (
        starts(["random"], SPACE, y, mask, 2, seed=0) for y, mask in zip((short, long, wide), masks, strict=True)
    )
    assert torch.equal(a, b[:, :, :3]) and torch.equal(a, c[..., :4])
    assert len(a[0].unique()) == 2 * 12 and torch.equal(a[0], a[1])
    assert len(b[0].unique()) == 2 * 20 and len(c[0].unique()) == 2 * 18
    assert a.min() >= 0 and a.max() <= 1


@pytest.mark.parametrize(
    "descent",
    [
        Descent(steps=60, optimizer="gradient", lr=0.3),
        Descent(steps=60, optimizer="gradient", lr=0.2, momentum=0.5),
        Descent(steps=400, lr=0.05),
        Descent(steps=60, method="mirror", optimizer="gradient", lr=0.3),
    ],
    ids=lambda descent: f"{descent.method}-{descent.optimizer}-{descent.momentum:g}",
)
@pytest.mark.parametrize("padded", [True, False])
def test_descent_finds_the_minimum_of_a_quadratic(descent, padded):
    task = ToyImages(padded=padded)
    energy, batch = bind_energy(task, task.part("train")[:3])
    start = starts(["zeros", "random"], task.space, batch.gold, batch.x.mask, random=2)
    result = minimise(energy, task.space, start, batch.x.mask, descent)
    expected = batch.x.inputs["image"].unsqueeze(1).expand(3, 3, *batch.gold.shape[2:])
    torch.testing.assert_close(result.y, expected, atol=1e-3, rtol=0)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("first", ["zeros", "uniform", "random", "net"])
def test_gbi_predicts_images_with_and_without_a_mask(padded, first):
    task = ToyImages(padded=padded)
    energy, batch = bind_energy(task, task.part("train")[:4])
    net = Echo(sp.Config(), task) if first == "net" else None
    config = Gbi.Config(starts=[first], steps=80, optimizer="gradient", lr=0.3, random=2)
    gbi = Gbi(config, task, net=net).eval()
    proposal = gbi(batch.x, energy)
    image = batch.x.inputs["image"].unsqueeze(1)
    torch.testing.assert_close(proposal.mean, image, atol=1e-6, rtol=0, check_dtype=False)
    single_energy, single = bind_energy(task, task.part("train")[1:2])
    rows, columns = single.gold.shape[2:]
    for steps in (1, 3):
        gbi = Gbi(config.model_copy(update={"steps": steps}), task, net=net).eval()
        batched = gbi(batch.x, energy).mean[1:2, :, :rows, :columns]
        torch.testing.assert_close(gbi(single.x, single_energy).mean, batched)
    start = gbi.training_proposal(batch.x, energy)
    torch.testing.assert_close(start.mean, image if net else torch.zeros_like(image), check_dtype=False)


def test_the_structured_hinge_by_hand():
    """E − Δ = ½‖x − y‖² − c·½‖y − g‖² is lowest at (x − c g) / (1 − c) if c is below 1."""
    task = ToyImages()
    energy, batch = bind_energy(task, task.part("train")[:3])
    descent = Descent(steps=200, optimizer="gradient", lr=0.5)
    loss = Ssvm(Ssvm.Config(cost="l1", descent=descent), task)
    output = loss(energy, batch, Echo(sp.Config(), task)(batch.x))
    image, c = batch.x.inputs["image"].unsqueeze(1), task.space.cost_weight
    violating = (image - c * batch.gold) / (1 - c)
    half = lambda a, b: 0.5 * (a - b).square().sum((1, 2, 3))  # noqa: E731, both are zero on padding
    expected = half(violating, batch.gold) * c - half(image, violating) + half(image, batch.gold)
    torch.testing.assert_close(output, expected)
    assert (expected > 0).all()


def test_the_targets_of_a_value_network_are_scores_of_the_space():
    task = ToyImages()
    energy, batch = bind_energy(task, task.part("train")[:3])
    image = batch.x.inputs["image"].unsqueeze(1)
    loss, proposal = Dvn(Dvn.Config(starts=["net"], descent=Descent(steps=1)), task), Echo(sp.Config(), task)(batch.x)
    torch.manual_seed(0)
    y = loss.outputs(energy, batch, proposal)
    assert torch.equal(y[:, :2], torch.cat([batch.gold, image], 1))  # the energy is lowest at the noisy image
    torch.manual_seed(0)
    output = loss(energy, batch, proposal)
    score, predicted = task.space.score(y, batch.gold, batch.x.mask), torch.sigmoid(-energy(y))
    expected = -(score * predicted.log() + (1 - score) * (1 - predicted).log()).mean(1)
    torch.testing.assert_close(output, expected)


class Pixels(sp.FeatureNetwork):
    """Vectors of pixels, `(batch, row, column, 2)`."""

    def __init__(self, task):
        super().__init__(sp.Config(), task)
        self.output_dim = 2
        self.linear = nn.Linear(1, 2)

    def forward(self, x):
        return self.linear(x.inputs["image"].unsqueeze(-1))


def test_components_for_labels_and_tags_reject_images():
    task, registry = ToyImages(), Registry()
    net = Echo(sp.Config(), task)
    with pytest.raises(ConfigError, match=r"'rerank' chooses among the k most probable outputs.*use 'gbi'"):
        Rerank(Rerank.Config(), task, net=net)
    net.features = Pixels(task)
    with pytest.raises(
        ConfigError, match=r"Echo requires a known number of labels or tags, .* the outputs are RealGrid"
    ):
        local_layer(net)
    for kind, name in (
        *(("energy", "local"), ("energy", "linear_chain"), ("energy", "seal.labels"), ("inference_net", "crf")),
        *(("inference_net", "independent"), ("cost_net", "infnet.stacked"), ("cost_net", "infnet.separated")),
        *(("energy_loss", "seal.margin_compound"), ("cost_net", "infnet.stacked_bilstm")),
    ):
        cls, config = registry.parse(kind, {"type": name}, kind, "test")
        with pytest.raises(ConfigError, match=r"RealGrid|tag sequences"):
            cls(config, task, Pixels(task) if cls.uses_features else None)
    cls, config = registry.parse("cost_net", {"type": "infnet.shared"}, "cost_net", "test")
    with pytest.raises(ConfigError, match="RealGrid"):
        cls(config, task).bind(net)
    cls, config = registry.parse("trainer", {"type": "infnet.joint", "entropy_weight": 0.5}, "trainer", "test")
    with pytest.raises(ConfigError, match="entropy_weight: outputs that are real numbers have no entropy; use 0"):
        cls(config).stages(sp.Model(net, Quadratic(sp.Config(), task), None), task)
