"""The implicit gradient against closed forms, finite differences of the whole bilevel map, and unrolling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import spen_plugins as sp
from spen_implicit.bilevel import Bilevel
from spen_implicit.divergence import ContrastiveDivergence
from spen_implicit.gradient import ImplicitGradient
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.testing import ToyMasks
from spen_plugins.testing.comparing import collate, pick_by_length
from tests.e2e.toys import energy_for, make, toy
from tests.loaded import parsed

METHODS = [
    {"inverse": "cg", "terms": 40, "damping": 0.0},
    {"inverse": "series", "terms": 6000, "damping": 0.0, "power_iterations": 100},
]


def settings(**fields: object) -> Bilevel.Config:
    return Bilevel.Config(**fields)


class Ridge:
    """θ*(φ) = argmin ½ |X θ − t − φ₀|² + ½ e^φ₁ |θ|², in closed form, and L_Prim = ½ |Z θ* − s|² + ½ |φ|²."""

    def __init__(self) -> None:
        self.x, self.z = (torch.randn(7, 4, dtype=torch.float64) for _ in range(2))
        self.t, self.s = (torch.randn(7, dtype=torch.float64) for _ in range(2))
        self.phi = nn.Parameter(torch.tensor([0.3, -0.5], dtype=torch.float64))
        self.theta = nn.Parameter(self.best(self.phi).detach())

    def best(self, phi: Tensor) -> Tensor:
        h = self.x.T @ self.x + phi[1].exp() * torch.eye(4, dtype=torch.float64)
        return torch.linalg.solve(h, self.x.T @ (self.t + phi[0]))

    def auxiliary(self, theta: Tensor, phi: Tensor) -> Tensor:
        return 0.5 * (self.x @ theta - self.t - phi[0]).square().sum() + 0.5 * phi[1].exp() * theta.square().sum()

    def primary(self, theta: Tensor, phi: Tensor) -> Tensor:
        return 0.5 * (self.z @ theta - self.s).square().sum() + 0.5 * phi.square().sum()

    def gradient(self, **fields: object) -> Tensor:
        """By the rule."""
        loss = self.primary(self.theta, self.phi)
        terms = lambda context: {"loss": self.auxiliary(self.theta, self.phi)}  # noqa: E731
        rule = ImplicitGradient(settings(**fields), terms, None)
        return by_rule(rule, loss, [self.theta], [self.phi])[0]


def by_rule(rule: Callable, loss: Tensor, theta, phi, context=None) -> list[Tensor]:
    for parameter in phi:
        parameter.grad = None
    rule(
        sp.Update(
            context=context,
            stage=None,
            phase=SimpleNamespace(name="energy"),
            loss=loss,
            parameters=phi,
            owned={"inference_net": theta, "energy": phi},
            examples=1 if context is None else len(context.batch),
            backward=torch.autograd.backward,
        )
    )
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in phi]


@pytest.mark.parametrize("fields", METHODS, ids=["cg", "series"])
def test_ridge_against_the_whole_map(fields: dict) -> None:
    torch.manual_seed(1)
    ridge = Ridge()
    whole = lambda phi: ridge.primary(ridge.best(phi), phi)  # noqa: E731
    right = torch.autograd.functional.jacobian(whole, ridge.phi.detach())
    found = ridge.gradient(**fields)
    torch.testing.assert_close(found, right, rtol=1e-10, atol=1e-10)
    ends = []
    for i in range(2):
        step = torch.zeros(2, dtype=torch.float64)
        step[i] = 1e-5
        ends.append((whole(ridge.phi + step) - whole(ridge.phi - step)).detach() / 2e-5)
    torch.testing.assert_close(found, torch.stack(ends), rtol=1e-7, atol=1e-7)


def test_ridge_against_unrolling_to_convergence() -> None:
    torch.manual_seed(1)
    ridge = Ridge()
    theta, phi = torch.zeros(4, dtype=torch.float64), ridge.phi
    rate = 1 / float(torch.linalg.eigvalsh(ridge.x.T @ ridge.x)[-1] + 1)
    for _ in range(1500):
        residual = ridge.x @ theta - ridge.t - phi[0]
        theta = theta - rate * (ridge.x.T @ residual + phi[1].exp() * theta)
    [right] = torch.autograd.grad(ridge.primary(theta, phi), phi)
    torch.testing.assert_close(ridge.gradient(**METHODS[0]), right, rtol=1e-7, atol=1e-7)


def test_the_control_misses_a_term() -> None:
    torch.manual_seed(1)
    ridge = Ridge()
    explicit = ridge.phi.detach()
    assert (ridge.gradient(**METHODS[0]) - explicit).norm() > 0.1 * explicit.norm()


def small(kind: str, outputs: str = "soft", **features: object) -> tuple[sp.Task, sp.Model, sp.Batch]:
    """A model of a toy task, in float64."""
    task, batch = toy(kind)
    net = make(Independent, task).double()
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(samples=3, outputs=outputs), task)
    return task, sp.Model(net, energy_for(task), loss), batch


def rule_for(model: sp.Model, **fields: object) -> tuple[ImplicitGradient, Bilevel]:
    trainer = Bilevel(Bilevel.Config(**fields))
    [stage] = trainer.stages(model, None)
    return stage.phases[1].gradient, trainer


def players(model: sp.Model) -> tuple[list[Tensor], list[Tensor]]:
    """θ and φ."""
    return list(model.inference_net.parameters()), list(model.energy.parameters())


def update(rule: ImplicitGradient, model: sp.Model, batch: sp.Batch) -> list[Tensor]:
    """The gradient in φ that an update has by the rule."""
    context = sp.OneBatch(model, batch)
    loss = sum(term.sum() for term in rule.primary(context).values()) / len(batch)
    return by_rule(rule, loss, *players(model), context)


def check_against_the_dense_hessian(model: sp.Model, batch: sp.Batch, inverse: str, share: float) -> None:
    """explicit − cross · (H + δI)⁻¹ · ∂L_Prim/∂θ, with the whole Hessian; the implicit term isn't zero."""
    rule, trainer = rule_for(model, inverse=inverse, terms=300, damping=3.0, power_iterations=60)
    theta, phi = players(model)
    found = update(rule, model, batch)

    auxiliary = sum(term.sum() for term in trainer._compute_auxiliary(sp.OneBatch(model, batch)).values()) / len(batch)
    g = torch.cat([p.flatten() for p in torch.autograd.grad(auxiliary, theta, create_graph=True)])
    flat = lambda tensors: torch.cat([t.flatten() for t in tensors])  # noqa: E731
    rows = [torch.autograd.grad(value, theta, retain_graph=True, materialize_grads=True) for value in g]
    h = torch.stack([flat(row) for row in rows])
    torch.testing.assert_close(h, h.T)
    primary = sum(term.sum() for term in rule.primary(sp.OneBatch(model, batch)).values()) / len(batch)
    v = flat(torch.autograd.grad(primary, theta, retain_graph=True, materialize_grads=True))
    largest = float(torch.linalg.eigvalsh(h).abs().max())
    shift = 3.0 * largest
    if inverse == "identity":
        u = v / (1.2 * largest + shift)
    else:
        u = torch.linalg.solve(h + shift * torch.eye(len(h)).to(h), v)
    explicit = torch.autograd.grad(primary, phi, materialize_grads=True)
    missing = torch.autograd.grad(g @ u, phi, materialize_grads=True)
    right = [a - b for a, b in zip(explicit, missing, strict=True)]
    torch.testing.assert_close(flat(found), flat(right), rtol=1e-4, atol=1e-7)
    assert flat(missing).norm() > share * flat(explicit).norm()
    assert all(p.grad is None for p in theta)


@pytest.mark.parametrize("kind", ["labels", "tags"])
@pytest.mark.parametrize("inverse", ["cg", "series", "identity"])
def test_a_real_batch_against_the_dense_hessian(kind: str, inverse: str) -> None:
    _, model, batch = small(kind)
    check_against_the_dense_hessian(model, batch, inverse, 1e-3)


@pytest.mark.parametrize("padded", [True, False])
def test_masks_against_the_dense_hessian(padded: bool) -> None:
    """A convolutional net, and an energy that sees image and mask."""
    task = ToyMasks(padded=padded)
    net, net_config = parsed("inference_net", "images.fcn", filters=2, levels=1, groups=1)
    energy, energy_config = parsed("energy", "images.conv", filters=[2, 2], size=3, hidden=2)
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(outputs="soft"), task)
    model = sp.Model(net(net_config, task).double().eval(), energy(energy_config, task).double().eval(), loss)
    check_against_the_dense_hessian(model, collate(task, pick_by_length(task, 3)), "cg", 0)


@pytest.mark.parametrize("kind", ["labels", "tags"])
@pytest.mark.parametrize("outputs", ["soft", "relaxed", "straight"])
def test_differences_agree_with_double_backward(kind: str, outputs: str) -> None:
    _, model, batch = small(kind, outputs)
    model.inference_net.features.register_forward_hook(lambda net, inputs, output: nn.functional.dropout(output, 0.5))
    found = {}
    for products in ("exact", "finite_differences"):
        torch.manual_seed(0)
        rule, _ = rule_for(model, products=products, terms=3)
        theta = list(model.inference_net.parameters())
        before = [p.detach().clone() for p in theta]
        found[products] = torch.cat([g.flatten() for g in update(rule, model, batch)])
        assert all(torch.equal(p, q) for p, q in zip(theta, before, strict=True))
    torch.testing.assert_close(found["finite_differences"], found["exact"], rtol=1e-3, atol=1e-5)


def test_differences_and_the_outer_loss_have_the_same_dropout() -> None:
    """Also in measures."""
    _, model, batch = small("tags", "relaxed")
    drawn: list[tuple[str, Tensor]] = []

    def draw(which: str, like: Tensor) -> Tensor:
        drawn.append((which, (torch.rand(like.shape) < 0.5).to(like)))
        return drawn[-1][1]

    net, energy = model.inference_net.features, model.energy
    net.register_forward_hook(lambda net, inputs, output: output * draw("net", output))
    encode = energy.encode
    energy.encode = lambda x: (draw("energy", torch.ones(4)), encode(x))[1]
    rule, _ = rule_for(model, products="finite_differences", terms=3)
    for use in (
        lambda: update(rule, model, batch),
        lambda: rule.measures(sp.OneBatch(model, batch), *players(model)),
    ):
        drawn.clear()
        use()
        for which in ("net", "energy"):
            first, *others = [mask for name, mask in drawn if name == which]
            assert len(others) > 4 and all(torch.equal(first, mask) for mask in others)


def test_a_batch_without_gold_has_no_implicit_term() -> None:
    _, model, batch = small("tags")
    batch = replace(batch, gold=None, labelled=torch.zeros_like(batch.labelled))
    rule, trainer = rule_for(model)
    assert all(not found.any() for found in update(rule, model, batch))
    cross_entropy = trainer._compute_auxiliary(sp.OneBatch(model, batch))["cross_entropy"]
    assert cross_entropy.requires_grad and not cross_entropy.any()


def test_measures() -> None:
    _, model, batch = small("labels")
    rule, _ = rule_for(model)
    before = rule.state_dict()
    with torch.no_grad():
        found = rule.measures(sp.OneBatch(model, batch), *players(model))
    assert set(found) == {"ended", "explicit", "implicit", "eigenvalue_min", "eigenvalue_max"}
    assert all(value.shape == (len(batch),) for value in found.values())
    assert found["eigenvalue_max"][0] > found["eigenvalue_min"][0] and found["implicit"][0] > 0
    assert rule.state_dict()["largest"] == before["largest"]


def test_the_state_survives() -> None:
    _, model, batch = small("labels")
    rule, _ = rule_for(model)
    update(rule, model, batch)
    other, _ = rule_for(model)
    other.load_state_dict(rule.state_dict())
    assert other.state_dict()["largest"] == rule.state_dict()["largest"] > 0
    assert other.state_dict()["counts"] == rule.state_dict()["counts"]
    assert rule.state_dict()["counts"][1] == 1


def quadratic(scale: float = 1.0):
    """θ, φ, and L_Aux of Hessian 2 · scale · I."""
    theta, phi = (nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(2))
    return theta, phi, lambda context: {"loss": scale * theta.square().sum() + (theta * phi).sum()}


@pytest.mark.parametrize("scale", [0.0, float("nan")])
def test_a_hessian_without_inverse_ends_with_a_sentence(scale: float) -> None:
    theta, phi, terms = quadratic(scale)
    rule = ImplicitGradient(settings(), terms, None)
    with pytest.raises(sp.RunError, match="has no inverse"):
        by_rule(rule, (theta - 2 * phi).square().sum(), [theta], [phi])


def test_a_diverging_series_ends_with_a_sentence() -> None:
    """λmax is far out of date, so the step is far too long: u is too large for a number."""
    theta, phi, terms = quadratic()
    rule = ImplicitGradient(settings(), terms, None)
    rule.load_state_dict(
        {"products": "exact", "vector": [torch.ones_like(theta)], "largest": 1e-300, "counts": [1, 1, 0]}
    )
    with pytest.raises(sp.RunError, match=r"is not finite.*trainer\.damping"):
        by_rule(rule, 1e10 * (theta - 2 * phi).square().sum(), [theta], [phi])
