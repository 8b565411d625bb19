"""The contract checks find broken members of proposals, energies, spaces and feature networks."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.errors import PluginError
from spen_plugins.spaces import IndependentLabels, LabelSet
from spen_plugins.testing import (
    ToyFeatures,
    ToyLabels,
    ToyTags,
    check_energy,
    check_feature_network,
    check_inference_net,
    check_space,
)


def make_net(kind=IndependentLabels, **members):
    """A net of independent labels whose proposal is of this class, with changed members."""

    class Net(sp.InferenceNet):
        def __init__(self, config, task, features=None):
            super().__init__(config, task, features)
            self.linear = torch.nn.Linear(3, 4)

        def forward(self, x, energy=None):
            return kind(self.space, self.linear(self.features(x)).unsqueeze(1), x.mask)

    for name, member in members.items():
        setattr(Net, name, member)
    task = ToyLabels()
    torch.manual_seed(0)
    net = Net(sp.Config(), task, ToyFeatures(task))
    with torch.no_grad():
        net.linear.bias.copy_(torch.tensor([1.0, -1.5, 2.0, 0.3]))
    return net, task


def make_proposal(**members):
    return type("Broken", (IndependentLabels,), members)


def draw_together(proposal, n):
    """Samples with the right mean, but one random number for all labels."""
    return (torch.rand(len(proposal.logits), n, 1) < proposal.mean).to(proposal.logits)


def find_k_best(proposal, k):
    """The second best output is missing."""
    y, log_q = IndependentLabels.k_best(proposal, k + 1)
    kept = [0, *range(2, k + 1)]
    return y[:, kept], log_q[:, kept]


PROPOSALS = [
    ({"log_prob": lambda q, y: IndependentLabels.log_prob(q, y) - 1}, r"log_prob doesn't sum to 1"),
    ({"density": lambda q, y: -IndependentLabels.log_prob(q, y)}, r"density differs from log_prob"),
    (
        {"mode": property(lambda q: torch.zeros_like(q.logits)), "k_best": sp.Proposal.k_best},
        r"mode is not the most probable output; .* approximate",
    ),
    ({"mode": property(lambda q: (q.logits > 0).to(q.logits) + 0 * q.logits)}, r"mode carries a gradient"),
    ({"mean": property(lambda q: 0.9 * q.logits.sigmoid())}, r"mean is not that of log_prob"),
    ({"mean": property(lambda q: q.logits.sigmoid().detach())}, r"mean has no gradient to Net"),
    ({"sample": draw_together, "sparse": False}, r"sample: the frequencies of variables or pairs of 10000 samples are"),
    (
        {"sample": lambda q, n: torch.bernoulli(0.9 * IndependentLabels.sample(q, n)), "sparse": False},
        r"sample: the frequencies of variables or pairs",
    ),
    ({"k_best": lambda q, k: tuple(v.flip(1) for v in IndependentLabels.k_best(q, k))}, r"not in the order"),
    ({"k_best": find_k_best}, r"k_best gives another log q"),
    ({"rsample": lambda q, n, temperature=1.0: q.mean}, r"rsample: found shape \(4, 1, 4\), expected \(4, 3, 4\)"),
    ({"perturb": lambda q, n, std: q.mean.detach().expand(-1, n, -1)}, r"perturb has no gradient to Net"),
    ({"tempered": lambda q, temperature: q}, r"tempered\(1e6\) is not close to uniform"),
    ({"detach": lambda q: q}, r"detach\(\) leaves a gradient"),
    ({"map_rows": lambda q, change: replace(q, logits=change(q.logits) / 2, _kept={})}, r"map_rows changes log_prob"),
    ({"label_powers": lambda q, t: torch.ones(len(q.logits), len(t), 4).double()}, r"label_powers differs"),
    (
        {
            "log_prob": lambda q, y: IndependentLabels.log_prob(q, y) - 0.1 * q.logits.mean(0).sum(),
        },
        r"log-probability: an example's result depends on its neighbours",
    ),
    (
        {"mode": property(lambda q: (q.mean > q.mean.mean(0)).to(q.logits)), "k_best": sp.Proposal.k_best},
        r"mode: an example's result depends on its neighbours",
    ),
]


@pytest.mark.parametrize(("members", "message"), PROPOSALS)
def test_a_broken_member_of_a_proposal_is_found(members, message):
    check_inference_net(*make_net())
    with pytest.raises(AssertionError, match=message):
        check_inference_net(*make_net(make_proposal(**members)))


def test_members_may_be_approximate_if_the_test_names_them():
    kind = make_proposal(
        mode=property(lambda q: torch.zeros_like(q.logits)), k_best=sp.Proposal.k_best, tempered=lambda q, _: q
    )
    check_inference_net(*make_net(kind), approximate=("mode", "tempered"))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"uses_energy": True}, r"Net has uses_energy = True; pass an energy"),
        ({"chooses": True}, r"Net: found chooses = True; expected"),
        ({"choices": lambda net: [{"a": 1.0}]}, r"Net has choices, but no `choose`"),
        ({"training_proposal": lambda net, x, energy=None: None}, r"returns a NoneType; expected a Proposal"),
    ],
)
def test_a_broken_member_of_a_net_is_found(members, message):
    with pytest.raises((AssertionError, PluginError), match=message):
        check_inference_net(*make_net(**members))


class Linear(sp.Energy):
    """E(y) = −w · y, with all optional members."""

    takes_sparse = True

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.weight = torch.nn.Parameter(torch.tensor([1.0, -1.5, 2.0, 0.3]))

    def encode(self, x):
        return x.size

    def forward(self, features, y):
        return -(y if isinstance(y, torch.Tensor) else y.dense(self.weight.dtype)) @ self.weight

    def log_z(self, features):
        return F.softplus(self.weight).sum().expand(features)

    def marginals(self, features):
        return self.weight.sigmoid().expand(features, 1, -1)

    def modes(self, features, shift):
        return (self.weight + shift > 0).to(shift)


def change_y(energy, features, y):
    values = Linear.forward(energy, features, y)
    with torch.no_grad():
        y.mul_(0.5)
    return values


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"log_z": lambda energy, size: Linear.log_z(energy, size) + 1}, r"log_z is not ln Σ exp"),
        ({"marginals": lambda energy, size: 0.5 + 0 * Linear.marginals(energy, size)}, r"marginals is not the mean"),
        ({"modes": lambda energy, size, shift: torch.ones_like(shift)}, r"modes is not the minimum"),
        ({"modes": lambda energy, size, shift: torch.ones(1)}, r"modes: found shape \(1,\)"),
        (
            {"forward": lambda energy, size, y: Linear.forward(energy, size, y) * (1 + (not hasattr(y, "sum")))},
            "other energies than the dense",
        ),
        ({"forward": change_y}, r"Broken changes 'y' in place"),
        (
            {"forward": lambda energy, size, y: Linear.forward(energy, size, y).float().double()},
            r"Broken's gradient in y differs from finite differences; .* float64",
        ),
    ],
)
def test_a_broken_member_of_an_energy_is_found(members, message):
    task = ToyLabels()
    check_energy(Linear(sp.Config(), task), task)
    with pytest.raises(AssertionError, match=message):
        check_energy(type("Broken", (Linear,), members)(sp.Config(), task), task)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"cost": lambda space, y, gold, mask=None: 0 * y.sum(-1)}, r"cost and score disagree"),
        ({"score": lambda space, y, gold, mask: 1 + 0 * y.sum(-1)}, r"cost and score disagree"),
        ({"size": lambda space, y, mask=None: y.new_zeros(len(y), 1)}, r"size: found 0, expected at least 1"),
        ({"logits": lambda space, y, mask=None: 0 * y}, r"logits doesn't invert relax"),
        ({"round": lambda space, y, mask=None: (y > 0.9).to(y)}, r"round doesn't return the nearest"),
        (
            {"project": lambda space, y, mask=None: torch.where((y < 0) | (y > 1), 0.5, y)},
            r"project doesn't return the nearest",
        ),
    ],
)
def test_a_broken_member_of_a_space_is_found(members, message):
    with pytest.raises(AssertionError, match=message):
        check_space(type("Broken", (LabelSet,), members)(["a", "b", "c"]))


class SeesNeighbours(ToyFeatures):
    def forward(self, x):
        vectors = super().forward(x)
        return vectors + F.pad(vectors[:, :-1], (0, 0, 1, 0)) * x.mask.unsqueeze(-1)


class Averages(ToyFeatures):
    def forward(self, x):
        vectors = super().forward(x) * x.mask.unsqueeze(-1)
        return vectors + vectors.sum(1, keepdim=True) / x.mask.sum(1).view(-1, 1, 1)


class HasNoTokens(ToyFeatures):
    def forward(self, x):
        return super().forward(x)[:, 0]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (SeesNeighbours, "contextual = False, but a token's vector depends"),
        (Averages, "contextual = False, but a token's vector depends"),
        (HasNoTokens, r"found shape \(4, 3\)"),
    ],
)
def test_a_broken_feature_network_is_found(features, message):
    task = ToyTags()
    with pytest.raises(AssertionError, match=message):
        check_feature_network(features(task), task)


def test_a_mask_of_numbers_is_found():
    class FloatMask(ToyTags):
        def collate(self, examples, rows=None):
            batch = super().collate(examples, rows)
            return replace(batch, x=replace(batch.x, mask=batch.x.mask.float()))

    task = FloatMask()
    with pytest.raises(AssertionError, match=r"the task's mask: found torch.float32, expected torch.bool"):
        check_feature_network(ToyFeatures(task), task)
