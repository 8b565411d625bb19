"""The unrolled net: its gradient against finite differences, and settings that change no bit of it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch

import spen_plugins as sp
from spen_e2e.unrolled import Unrolled, iterates
from spen_infnet.high_order import HighOrder, SkipChain
from spen_infnet.tag_lm import TagLm
from spen_plugins.builtin.nets.crf import Crf
from spen_plugins.inference.descent import Descent, minimise
from spen_plugins.nn import Gradient, entropy, gradient_at
from spen_plugins.testing import ToyLabels, ToyTags, check_inference_net
from spen_seal.self_attention import SelfAttention
from tests.e2e.toys import KINDS, Bad, Curved, check_slope, energy_for, make, net_for, toy

SETTINGS = [
    {},
    {"method": "logits"},
    {"rates": "learned"},
    {"rates": "decayed", "momentum": 0.5},
    {"method": "logits", "rates": "learned", "momentum": 0.3},
]
IDS = [",".join(f"{key}={value}" for key, value in fields.items()) or "plain" for fields in SETTINGS]


def compute_loss(proposal: sp.Proposal, gold: torch.Tensor) -> torch.Tensor:
    """A loss of all iterates that treats each differently."""
    losses = [proposal.space.independent(logits, proposal.mask).log_prob(gold).sum() for logits in iterates(proposal)]
    return -sum(loss * math.sin(1 + t) for t, loss in enumerate(losses))


def select_parameters(net: sp.InferenceNet, energy: sp.Energy) -> list[torch.nn.Parameter]:
    return [*net.parameters(), *energy.parameters()]


def check_gradient(net: sp.InferenceNet, energy: sp.Energy, batch: sp.Batch) -> None:
    check_slope(lambda: compute_loss(net(batch.x, energy.at(batch.x)), batch.gold), select_parameters(net, energy))


@pytest.mark.parametrize("fields", SETTINGS, ids=IDS)
@pytest.mark.parametrize(("kind", "tau"), [*((kind, 0.0) for kind in KINDS), ("labels", 0.7), ("tags", 0.7)])
def test_the_gradient_through_the_steps_against_finite_differences(kind: str, fields: dict, tau: float) -> None:
    task, batch = toy(kind)
    check_gradient(net_for(task, entropy=tau, **fields), energy_for(task), batch)


@pytest.mark.parametrize("cls", [SelfAttention, TagLm, HighOrder, SkipChain], ids=lambda cls: cls.__name__)
def test_the_gradient_through_the_steps_on_other_plugins_energies(cls: type) -> None:
    """Attention and recurrent nets over y have a second derivative here."""
    task, batch = toy("tags")
    check_gradient(net_for(task, entropy=0.5), make(cls, task).double().eval(), batch)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_through_projections_inside_the_relaxed_set(kind: str) -> None:
    """Small steps, so that no variable is at its border, where there is no gradient."""
    task, batch = toy(kind)
    check_gradient(net_for(task, method="projected", lr=0.002), energy_for(task), batch)


def test_the_gradient_stops_at_the_border() -> None:
    """Eq. 6 after a long step: every variable is at its border, and nothing is learned (Sec. 4.1)."""
    task, batch = toy("labels")
    net, energy = net_for(task, method="projected", lr=100.0), energy_for(task)
    proposal = net(batch.x, energy.at(batch.x))
    last = task.space.independent(proposal.logits).log_prob(batch.gold).sum()
    assert not any(g.any() for g in torch.autograd.grad(last, list(energy.parameters()), materialize_grads=True))


def test_mirror_descent_is_the_step_on_logits() -> None:
    """Eq. 7, y_{t+1} = SoftMax(ln y_t − η ∇E(y_t)), is Eq. 8, l_{t+1} = l_t − η ∇E(SoftMax(l_t))."""
    task, batch = toy("tags")
    energy, net = energy_for(task), net_for(task, steps=4)
    bound, mask = energy.at(batch.x), batch.x.mask
    y = task.space.relax(net.net(batch.x).logits, mask).detach()
    for logits in iterates(net(batch.x, bound))[1:]:
        point = y.clone().requires_grad_()
        [slope] = torch.autograd.grad(bound(point).sum(), point)
        y = torch.softmax(y.clamp(min=1e-300).log() - 0.5 * slope, -1) * mask[:, None, :, None]
        torch.testing.assert_close(task.space.relax(logits, mask), y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["mirror", "logits", "projected"])
def test_the_steps_match_gradient_based_inference(kind: str, method: str) -> None:
    task, batch = toy(kind)
    energy, net = energy_for(task), net_for(task, method=method, momentum=0.4, steps=4)
    bound = energy.at(batch.x)
    net.keep_iterates = True
    with torch.no_grad():
        proposal, start = net(batch.x, bound), net.net(batch.x).mean
    descent = Descent(steps=4, method=method, optimizer="gradient", lr=0.5, momentum=0.4, pick="last")
    path = minimise(bound, task.space, start, batch.x.mask, descent, keep=True).path
    for iterate, expected in zip(proposal.iterates, path, strict=True):
        torch.testing.assert_close(iterate, expected, rtol=0, atol=1e-3)  # the search keeps y 1e-4 from 0 and 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", [*SETTINGS, {"method": "projected"}], ids=[*IDS, "projected"])
def test_prediction_makes_the_same_steps_to_the_bit(kind: str, fields: dict) -> None:
    for dtype in (torch.float32, torch.float64):
        task, batch = toy(kind)
        energy, net = energy_for(task).to(dtype), net_for(task, **fields).to(dtype)
        x = replace(batch.x, inputs={k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.x.inputs.items()})
        recorded = net(x, energy.at(x))
        with torch.no_grad():
            predicted = net(x, energy.at(x))
        assert recorded.logits.requires_grad and not predicted.logits.requires_grad
        assert torch.equal(recorded.logits, predicted.logits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", [*SETTINGS, {"method": "projected"}], ids=[*IDS, "projected"])
def test_checkpoints_and_a_tolerance_that_nothing_reaches_change_no_bit(kind: str, fields: dict) -> None:
    task, batch = toy(kind)
    energy, net = energy_for(task), net_for(task, **fields)
    results = []
    for changed in ({}, {"checkpoint": True}, {"tolerance": 1e-300}):
        net.config = net.config.model_copy(update={"checkpoint": False, "tolerance": 0.0, **changed})
        value = compute_loss(net(batch.x, energy.at(batch.x)), batch.gold)
        results.append((value, *torch.autograd.grad(value, select_parameters(net, energy), materialize_grads=True)))
    for plain, *others in zip(*results, strict=True):
        assert all(torch.equal(plain, other) for other in others)


def test_checkpoints_draw_the_same_dropout() -> None:
    class Dropping(sp.Energy):
        def __init__(self, task: sp.Task) -> None:
            super().__init__(sp.Config(), task)
            self.inner = Curved(task)

        def forward(self, features, y):
            return self.inner(features, torch.nn.functional.dropout(y, 0.5))

    task, batch = toy("tags")
    energy, gradients = Dropping(task).double(), []
    net = net_for(task)
    for checkpoint in (False, True):
        net.config = net.config.model_copy(update={"checkpoint": checkpoint})
        torch.manual_seed(0)
        value = compute_loss(net(batch.x, energy.at(batch.x)), batch.gold)
        gradients.append(torch.autograd.grad(value, select_parameters(net, energy)))
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_checkpoints_with_scores_that_are_computed_at_first_need() -> None:
    """From 2000 labels on, an energy computes local scores in its first call and caches them."""
    from spen_seal.labels import Labels

    task = ToyLabels(labels=2001)
    batch = task.collate(task.part("train")[:2])
    energy, net = make(Labels, task, hidden=2), net_for(task, checkpoint=True).float()
    value = compute_loss(net(batch.x, energy.at(batch.x)), batch.gold)
    assert all(g.isfinite().all() for g in torch.autograd.grad(value, select_parameters(net, energy)))


class Bowl(sp.Energy):
    """½ · stiffness of the row · ‖y − ½‖² of real-valued y: rows converge at different speeds."""

    def forward(self, features, y):
        stiffness = torch.tensor([1.0, 0.2, 0.0], dtype=y.dtype).view(3, 1, 1, 1)
        return (0.5 * stiffness * (y - 0.5).square()).flatten(2).sum(-1)


def test_a_row_that_has_converged_stands_still() -> None:
    task, batch = toy("images")
    energy = Bowl(sp.Config(), task)
    batch = replace(batch, x=replace(batch.x, mask=None))
    net = net_for(task, steps=60, tolerance=1e-3)
    full_net = net_for(task, steps=60)
    net.keep_iterates = full_net.keep_iterates = True
    with torch.no_grad():
        path, full_path = (variant(batch.x, energy.at(batch.x)).iterates for variant in (net, full_net))
    assert len(path) == len(full_path) == 61
    for i in range(3):
        moves = [float((b[i] - a[i]).abs().max()) for a, b in itertools.pairwise(path)]
        first_still = next(t for t, move in enumerate(moves) if move < 1e-3) + 1
        for t in range(61):
            assert torch.equal(path[t][i], full_path[min(t, first_still)][i])
        assert (moves[first_still:] == [0.0] * (60 - first_still)) and first_still == len(
            [m for m in moves if m >= 1e-3]
        ) + 1


def test_the_steps_end_when_all_rows_stand_still() -> None:
    calls = []

    class Counting(Bowl):
        def forward(self, features, y):
            calls.append(len(y))
            return super().forward(features, y)

    task, batch = toy("images")
    energy = Counting(sp.Config(), task)
    batch = replace(batch, x=replace(batch.x, mask=None))
    for tolerance, expected in ((0.0, 100), (1e-3, 60)):
        calls.clear()
        net_for(task, steps=100, tolerance=tolerance)(batch.x, energy.at(batch.x))
        assert len(calls) == expected if not tolerance else 10 < len(calls) < expected


def test_a_row_does_not_train_the_rates_of_steps_it_skips() -> None:
    task, batch = toy("images")
    energy, batch = Bowl(sp.Config(), task), replace(batch, x=replace(batch.x, mask=None))
    net = net_for(task, steps=100, rates="learned", tolerance=1e-3)
    value = net(batch.x, energy.at(batch.x)).logits.square().sum()
    [gradient] = torch.autograd.grad(value, net.log_rates)
    assert gradient[:10].all() and not gradient[80:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_learned_rates_get_gradients(kind: str) -> None:
    task, batch = toy(kind)
    energy, net = energy_for(task), net_for(task, rates="learned", lr=0.3)
    assert torch.stack(net.rates).tolist() == pytest.approx([0.3] * 3)
    value = task.space.independent(net(batch.x, energy.at(batch.x)).logits, batch.x.mask).log_prob(batch.gold).sum()
    [gradient] = torch.autograd.grad(value, net.log_rates)
    assert gradient.shape == (3,) and gradient.all()


def test_decayed_rates() -> None:
    task, _ = toy("labels")
    rates = net_for(task, rates="decayed", lr=0.6, steps=4).rates
    assert rates == pytest.approx([0.6, 0.6 / 2**0.5, 0.6 / 3**0.5, 0.3])


@pytest.mark.parametrize("precise", [True, False], ids=["float-net", "net-in-bfloat16"])
def test_steps_are_in_full_precision_under_autocast(precise: bool) -> None:
    """So are the energy's scores of x, which may have been computed in half precision before."""
    task, batch = toy("labels", n=4)
    energy, net = energy_for(task).float(), net_for(task).float()
    if precise:
        start = net.net.forward
        net.net.forward = lambda *inputs: torch.autocast("cpu", enabled=False)(start)(*inputs)
    x = replace(batch.x, inputs={"vector": batch.x.inputs["vector"].float()})

    def gradients(half: bool) -> list[torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            bound = energy.at(x)
            _ = bound.features
            value = task.space.independent(net(x, bound).logits).log_prob(batch.gold.float()).sum()
        return torch.autograd.grad(value, list(energy.parameters()))

    plain, mixed = gradients(False), gradients(True)
    close = {"rtol": 1e-5, "atol": 1e-6} if precise else {"rtol": 0.1, "atol": 0.05}
    for one, other in zip(plain, mixed, strict=True):
        assert one.dtype == other.dtype == torch.float32
        torch.testing.assert_close(one, other, **close)


@pytest.mark.parametrize(
    "fields", [*SETTINGS, {"method": "projected", "lr": 0.01}, {"checkpoint": True}, {"entropy": 1.0}]
)
@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_contract(kind: str, fields: dict) -> None:
    task, _ = toy(kind)
    check_inference_net(net_for(task, **fields), task, energy_for(task))


def test_a_start_with_dependent_variables_is_its_marginals() -> None:
    task, batch = toy("tags")
    net = Unrolled(Unrolled.Config(steps=1, lr=1e-9), task, net=make(Crf, task)).double().eval()
    value = net(batch.x, energy_for(task).at(batch.x))
    torch.testing.assert_close(value.mean, net.net(batch.x).mean, atol=1e-3, rtol=0)
    assert not torch.allclose(value.mean, task.space.relax(net.net(batch.x).logits, batch.x.mask), atol=1e-3)


def test_iterates_are_kept_for_learning_and_on_request() -> None:
    task, batch = toy("labels")
    energy, net = energy_for(task), net_for(task)
    value = net(batch.x, energy.at(batch.x))
    assert len(iterates(value)) == 4 and value.iterates == () and iterates(value)[-1] is value.logits
    assert torch.equal(iterates(value)[0], net.net(batch.x).logits)
    net.keep_iterates = True
    with torch.no_grad():
        value = net(batch.x, energy.at(batch.x))
    assert len(value.iterates) == 4 and torch.equal(value.iterates[-1], value.mean)
    assert len(iterates(value)) == 1
    other = net.net(batch.x)
    assert iterates(other) == (other.logits,)


def test_no_steps_are_the_net_at_the_start() -> None:
    task, batch = toy("tags")
    net = net_for(task, rates="learned")
    net.steps = 0
    assert torch.equal(net(batch.x, energy_for(task).at(batch.x)).logits, net.net(batch.x).logits)


@pytest.mark.parametrize("method", ["mirror", "logits", "projected"])
def test_a_descent_that_diverges_is_an_error_with_its_step(method: str) -> None:
    class Falling(sp.Energy):
        def forward(self, features, y):
            return -(y**4).flatten(2).sum(-1)

    task, batch = toy("images")
    net, energy = net_for(task, steps=40, lr=10.0, method=method), Falling(sp.Config(), task)
    with torch.no_grad(), pytest.raises(sp.RunError, match=r"gradient step \d+ of 40, with step size 10, led to NaN"):
        net(batch.x, energy.at(batch.x))
    assert not net(batch.x, energy.at(batch.x)).logits.isfinite().all()  # in training the loss reports it


def test_a_start_that_is_not_finite_is_not_the_descents_fault() -> None:
    task, batch = toy("labels")
    net = net_for(task)
    net.net.output.weight.data.fill_(torch.nan)
    with torch.no_grad(), pytest.raises(sp.RunError, match=r"inference_net\.net \(Independent\) is NaN"):
        net(batch.x, energy_for(task).at(batch.x))


def test_an_energy_without_a_second_derivative() -> None:
    task, batch = toy("labels")
    net, energy = net_for(task), Bad(sp.Config(), task)
    with torch.no_grad():
        net(batch.x, energy.at(batch.x))  # prediction needs one derivative
    with pytest.raises(sp.ConfigError, match="second derivative in y, and Bad has none"):
        net(batch.x, energy.at(batch.x))


def test_an_energy_that_hides_its_parameters_from_the_gradient() -> None:
    class Hiding(Curved):
        def forward(self, features, y):
            return (y * y.detach() * self.inner.weight.detach()[0]).flatten(2).sum(-1)

    task, batch = toy("tags")
    with pytest.raises(sp.ConfigError, match="that of Hiding does not"):
        net_for(task)(batch.x, Hiding(task).double().at(batch.x))


def test_settings_that_do_not_fit() -> None:
    task, _ = toy("labels")
    with pytest.raises(sp.ConfigError, match=r"requires inference_net\.net, the net"):
        Unrolled(Unrolled.Config(), task)
    with pytest.raises(sp.ConfigError, match="real numbers, which have no entropy"):
        net_for(toy("images")[0], entropy=0.5)


# The step that is shared with gradient-based inference


@pytest.mark.parametrize("method", ["mirror", "logits"])
def test_gradients_with_and_without_a_graph(method: str) -> None:
    space = sp.LabelSet(["a", "b"])
    point = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)

    def objective(y):
        return y.pow(3).sum(-1)

    y, energy, gradient = gradient_at(objective, space, point, None, method)
    assert not any(value.requires_grad for value in (y, energy, gradient))
    recorded = gradient_at(objective, space, point, None, method, create_graph=True)
    for one, other in zip((y, energy, gradient), recorded, strict=True):
        assert other.requires_grad and torch.equal(one, other)
    assert torch.autograd.gradcheck(lambda p: gradient_at(objective, space, p, None, method, True)[2], point)
    slope = 3 * y**2 * (y * (1 - y) if method == "logits" else 1)
    torch.testing.assert_close(gradient, slope)


def test_a_rate_may_be_a_tensor() -> None:
    rate = torch.tensor(0.5, requires_grad=True)
    step, plain = Gradient(rate, momentum=0.5), Gradient(0.5, momentum=0.5)
    point = other = torch.ones(2, 1, 3)
    for t in range(3):
        point, other = step(point, point * t), plain(other, other * t)
    assert torch.equal(point, other)
    assert torch.autograd.grad(point.sum(), rate)[0] != 0


def test_entropy_is_twice_differentiable_even_where_a_probability_is_0() -> None:
    space, mask = sp.TagSequence(list("abc")), torch.tensor([[True, True, False]])
    logits = torch.tensor([[[[0.3, -0.2, 0.0], [0.0, -95.0, -200.0], [0.0, 0.0, 0.0]]]], requires_grad=True)
    y = space.relax(logits, mask)
    [slope] = torch.autograd.grad(entropy(space, y).sum(), y, create_graph=True)
    assert not slope[0, 0, 2].any() and slope.isfinite().all()
    [curve] = torch.autograd.grad((slope * torch.ones_like(slope)).sum(), logits)
    assert curve.isfinite().all() and curve[0, 0, 0].any()
    relaxed = torch.rand(1, 2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda y: entropy(sp.LabelSet(list("abcd")), y), relaxed)


def test_toy_tags_have_padding() -> None:
    """Otherwise the tests above don't cover masks."""
    assert not toy("tags")[1].x.mask.all() and not toy("images")[1].x.mask.all()
    assert isinstance(toy("tags")[0], ToyTags)
