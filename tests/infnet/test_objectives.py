"""The objectives against numbers worked out by hand, and the gradient that each player gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import spen_plugins as sp
from spen_infnet.cost_nets import Separated, Shared, Stacked, StackedBiLstm
from spen_infnet.objectives import Compound, Contrastive, Margin, Perceptron, Slack
from spen_plugins.builtin.nets.basic import Independent
from tests.e2e.toys import make
from tests.infnet.toys import Linear, model_for
from tests.seal.toys import toy


class Fixed(sp.Energy):
    """E(y) = a number for gold, another for anything else."""

    def __init__(self, task, gold, of_gold, of_others):
        super().__init__(sp.Config(), task)
        self.gold, self.shift = gold, torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.of_gold, self.of_others = of_gold, of_others

    def forward(self, features, y):
        is_gold = (y == self.gold).flatten(2).all(-1)
        return torch.where(is_gold, self.of_gold, self.of_others).double() + self.shift * 0


def make_halfway_proposal(task, batch):
    """A proposal whose relaxed output at each token is half gold, half another tag, so that Δ is 1 per token."""
    gold = batch.gold
    y = 0.5 * gold + 0.5 * gold.roll(1, -1)
    logits = torch.log(y.clamp(min=1e-30)).requires_grad_()
    return task.space.independent(logits, batch.x.mask)


@pytest.mark.parametrize(
    ("objective", "fields", "of_gold", "of_others", "hinge"),
    [
        # Δ is the number of tokens n: margin n − E(F) + E(y), zero where the gap is larger than n.
        (Margin, {}, 1.0, 2.0, lambda n: n - 1.0),
        (Margin, {"cost": "mean_l1"}, 1.0, 1.5, lambda n: 0.5),
        (Margin, {}, -50.0, 2.0, lambda n: 0.0),
        (Perceptron, {}, 2.0, 0.5, lambda n: 1.5),
        (Perceptron, {}, 0.5, 2.0, lambda n: 0.0),
        (Contrastive, {}, 1.0, 1.25, lambda n: 0.75),
        (Contrastive, {"margin": 3.0}, 1.0, 1.25, lambda n: 2.75),
        (Slack, {}, 1.0, 1.25, lambda n: 0.75 * n),
        (Slack, {}, 1.0, 3.0, lambda n: 0.0),
    ],
)
def test_values_worked_by_hand(objective, fields, of_gold, of_others, hinge):
    task, batch = toy("tags")
    loss, proposal = make(objective, task, **fields), make_halfway_proposal(task, batch)
    energy = Fixed(task, batch.gold, of_gold, of_others).at(batch.x)
    lengths = batch.x.mask.sum(1).tolist()
    expected = torch.tensor([hinge(n) for n in lengths], dtype=torch.float64)
    terms = loss.terms(energy, batch, proposal)
    assert list(terms) == ["hinge"]
    torch.testing.assert_close(terms["hinge"], expected)


@pytest.mark.parametrize("truncate", [False, True])
def test_the_net_maximises_the_margin_with_or_without_truncation(truncate):
    task, batch = toy("tags")
    proposal = make_halfway_proposal(task, batch)
    lengths = batch.x.mask.sum(1).double()
    energy = Fixed(task, batch.gold, -50.0, 2.0).at(batch.x)
    net_terms = make(Margin, task, truncate_nets=truncate).net_terms(energy, batch, proposal)
    expected = torch.zeros_like(lengths) if truncate else 2.0 + 50.0 - lengths
    torch.testing.assert_close(net_terms["energy"], expected)


def test_the_compound_objective_is_margin_of_f_and_perceptron_of_a():
    task, batch = toy("tags")
    proposal = make_halfway_proposal(task, batch)
    energy = Linear(task, batch.gold)
    loss = make(Compound, task, perceptron_weight=0.3, cost_net_cross_entropy=2.0).double()
    bound, gold, mask = energy.at(batch.x), batch.gold, batch.x.mask
    augmented = loss.cost_net(batch, proposal)
    e_f, e_a, e_y = (bound(y)[:, 0] for y in (augmented.mean, proposal.mean, gold))
    delta = ((augmented.mean - gold).abs() * mask[:, None, :, None]).flatten(1).sum(-1)
    terms = loss.terms(bound, batch, proposal)
    torch.testing.assert_close(terms["margin"], (delta - e_f + e_y).clamp(min=0))
    torch.testing.assert_close(terms["perceptron"], 0.3 * (e_y - e_a).clamp(min=0))
    nll = -(gold * torch.log(augmented.mean.clamp(min=1e-30))).flatten(1).sum(-1)
    net_terms = loss.net_terms(bound, batch, proposal)
    torch.testing.assert_close(net_terms["cost_augmented"], -(delta - e_f))
    torch.testing.assert_close(net_terms["test_time"], 0.3 * e_a)  # E(x, y) is a constant to the nets
    torch.testing.assert_close(net_terms["cost_net_cross_entropy"], 2.0 * nll)
    measures = loss.measures(bound, batch, proposal)
    torch.testing.assert_close(measures["l1"], delta - e_f)
    torch.testing.assert_close(measures["l0"], (delta - e_f + e_y).clamp(min=0))
    unlabelled = replace(batch, labelled=batch.labelled & False, gold=0 * gold)
    assert not any(values.any() for values in loss.measures(bound, unlabelled, proposal).values())


def sum_terms(terms):
    return sum(terms.values())


def compute_norms(loss, batch, energy, net):
    """Squared norms of the gradients that reach the net, the loss's own net and the energy."""
    proposal = net(batch.x)
    bound = energy.at(batch.x)

    def norm(value, module):
        parameters = list(module.parameters())
        gradients = torch.autograd.grad(value.sum(), parameters, retain_graph=True, allow_unused=True)
        return float(sum(g.square().sum() for g in gradients if g is not None))

    net_terms = sum_terms(loss.net_terms(bound, batch, proposal))
    return norm(net_terms, net), norm(net_terms, loss), norm(sum_terms(loss.terms(bound, batch, proposal)), energy)


@pytest.mark.parametrize("cost_net", [Stacked, Separated])
def test_truncation_removes_the_gradient_of_the_nets_only(cost_net):
    """Where the energy separates gold from everything, l0 is 0: truncated nets stand still, others move."""
    task, batch = toy("tags")
    net = make(Independent, task).double()
    energy = Linear(task, batch.gold)
    energy.c.data = 100 * (1 - batch.gold[:, 0])
    for truncate in (True, False):
        loss = Compound(Compound.Config(truncate_nets=truncate), task, cost_net=make(cost_net, task)).double()
        to_a, to_f, to_energy = compute_norms(loss, batch, energy, net)
        assert (to_a == 0) is truncate and (to_f == 0) is truncate
        assert to_energy == 0  # Θ's hinge is always truncated
    energy.c.data = -100 * (1 - batch.gold[:, 0])
    norms = [
        compute_norms(
            Compound(Compound.Config(truncate_nets=t), task, cost_net=make(Stacked, task)).double(), batch, energy, net
        )
        for t in (True, False)
    ]
    assert all(norm > 0 for pair in norms for norm in pair)


@pytest.mark.parametrize("truncate", [True, False])
def test_a_net_whose_margin_holds_stands_still_and_the_energy_moves_on(truncate):
    """F predicts the tag with the highest energy, so that its margin holds; A's perceptron term does not."""
    task, batch = toy("tags")
    net, energy = make(Independent, task).double(), Linear(task, batch.gold)
    f = make(Stacked, task).double()
    torch.nn.init.zeros_(f.output.weight)
    f.output.bias.data = 8.0 * torch.nn.functional.one_hot(torch.tensor(3), len(task.space.tags)).double()
    worst = torch.nn.functional.one_hot(torch.tensor(3), len(task.space.tags))
    energy.c.data = (1100.0 * worst - 1000.0) * (1 - batch.gold[:, 0])
    is_wrong = (batch.gold[:, 0, :, 3] * batch.x.mask).sum(1) < batch.x.mask.sum(1)
    assert is_wrong.all()
    loss = Compound(Compound.Config(truncate_nets=truncate), task, cost_net=f).double()
    terms = loss.terms(energy.at(batch.x), batch, net(batch.x))
    assert not terms["margin"].any() and (terms["perceptron"] > 0).all()
    to_a, to_f, to_energy = compute_norms(loss, batch, energy, net)
    assert to_a > 0 and to_energy > 0
    assert (to_f == 0) is truncate


@pytest.mark.parametrize("truncate", [True, False])
def test_truncating_the_nets_changes_nothing_for_the_energy(truncate):
    task, batch = toy("tags")
    net, energy = make(Independent, task).double(), Linear(task, batch.gold)
    plain, other = (
        Compound(Compound.Config(truncate_nets=t), task, cost_net=make(Stacked, task)).double()
        for t in (False, truncate)
    )
    other.load_state_dict(plain.state_dict())
    a, b = (
        torch.autograd.grad(sum_terms(loss.terms(energy.at(batch.x), batch, net(batch.x))).sum(), energy.c)[0]
        for loss in (plain, other)
    )
    assert a.abs().sum() > 0
    torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("cost_net", "blocked"), [(Stacked, True), (StackedBiLstm, True), (Shared, False)])
def test_the_stacked_nets_block_the_gradient_into_a(cost_net, blocked):
    task, batch = toy("tags")
    net = make(Independent, task).double()
    f = make(cost_net, task)
    f.bind(net)
    proposal = net(batch.x)
    y = f.double()(batch, proposal).mean
    weights = torch.arange(y.numel(), dtype=y.dtype).view_as(y)
    gradients = torch.autograd.grad((y * weights).sum(), list(net.parameters()), allow_unused=True)
    assert all(gradient is None for gradient in gradients) is blocked


def test_the_stacked_net_is_the_papers_equation():
    task, batch = toy("tags")
    net, f = make(Independent, task).double(), make(Stacked, task).double()
    proposal = net(batch.x)
    mean = f(batch, proposal).mean
    w, b = f.output.weight, f.output.bias
    for i, t in batch.x.mask.nonzero().tolist():
        inputs = torch.cat([proposal.mean[i, 0, t], batch.gold[i, 0, t]])
        torch.testing.assert_close(mean[i, 0, t], torch.softmax(w @ inputs + b, -1))
    assert not mean[~batch.x.mask.unsqueeze(1)].any()


def count_parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameter_counts_are_the_papers():
    """Sec. 3.1 with L tags and features d wide: separated |A|, shared L (d + 1), stacked 2 L² + L."""
    task, _ = toy("tags")
    tags = len(task.space.tags)
    net = make(Independent, task)
    width = net.features.output_dim
    counts = {}
    for cls in (Separated, Shared, Stacked, StackedBiLstm):
        loss = Compound(
            Compound.Config(), task, cost_net=make(cls, task, **({"hidden": 5} if cls is StackedBiLstm else {}))
        )
        model_for(task, loss)  # introduces the two
        counts[cls] = count_parameters(loss)
    assert counts[Separated] == count_parameters(net)
    assert counts[Shared] == tags * (width + 1)
    assert counts[Stacked] == 2 * tags**2 + tags
    lstm = 4 * 5 * (2 * tags + 5 + 2)
    assert counts[StackedBiLstm] == 2 * lstm + tags * (2 * 5 + 1)


def test_a_shared_net_reports_missing_features():
    task, _ = toy("tags")
    net = make(Independent, task)
    net.features = None
    with pytest.raises(sp.errors.ConfigError, match=r"requires an inference net with features.*infnet\.stacked"):
        make(Shared, task).bind(net)


def test_the_stacked_bilstm_reads_each_sentence_separately():
    """A batch's outputs are those of its sentences one by one, through PyTorch's own bidirectional LSTM."""
    task, batch = toy("tags")
    net, f = make(Independent, task).double(), make(StackedBiLstm, task, hidden=3).double()
    lstm = torch.nn.LSTM(f.forwards.input_size, 3, bidirectional=True).double()
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        getattr(lstm, name).data = getattr(f.forwards, name).data
        getattr(lstm, f"{name}_reverse").data = getattr(f.backwards, name).data
    proposal = net(batch.x)
    mean = f(batch, proposal).mean
    for i, n in enumerate(batch.x.mask.sum(1).tolist()):
        inputs = torch.cat([proposal.mean[i, 0, :n], batch.gold[i, 0, :n]], -1)
        states, _ = lstm(inputs.unsqueeze(1))
        torch.testing.assert_close(mean[i, 0, :n], torch.softmax(f.output(states[:, 0]), -1))
