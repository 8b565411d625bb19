"""The implicit gradient of segmentation: a convolutional net, and an energy that sees image and mask."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_implicit.divergence import ContrastiveDivergence
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyMasks
from spen_plugins.testing.comparing import collate, pick_by_length
from tests.implicit.test_gradient import by_rule, rule_for

REGISTRY = Registry()


def make(kind: str, task: sp.Task, **fields: object):
    cls, config = REGISTRY.parse(kind, fields, kind, "test")
    return cls(config, task).double().eval()


def flat(tensors) -> Tensor:
    return torch.cat([t.flatten() for t in tensors])


@pytest.mark.parametrize("padded", [True, False])
def test_a_real_batch_against_the_dense_hessian(padded: bool) -> None:
    torch.manual_seed(0)
    task = ToyMasks(padded=padded)
    net = make("inference_net", task, type="fcn", filters=2, levels=1, groups=1)
    energy = make("energy", task, type="conv", filters=[2, 2], size=3, hidden=2)
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(outputs="soft"), task)
    model = sp.Model(net, energy, loss)
    batch = collate(task, pick_by_length(task, 3))
    rule, trainer = rule_for(model, inverse="cg", terms=300, damping=3.0, power_iterations=60)
    context = sp.OneBatch(model, batch)
    theta, phi = list(net.parameters()), list(energy.parameters())
    primary = sum(term.sum() for term in rule.primary(context).values()) / len(batch)
    found = by_rule(rule, primary, theta, phi, context)

    auxiliary = sum(term.sum() for term in trainer._auxiliary(sp.OneBatch(model, batch)).values()) / len(batch)
    g = flat(torch.autograd.grad(auxiliary, theta, create_graph=True))
    h = torch.stack([flat(torch.autograd.grad(value, theta, retain_graph=True, materialize_grads=True)) for value in g])
    torch.testing.assert_close(h, h.T)
    primary = sum(term.sum() for term in rule.primary(sp.OneBatch(model, batch)).values()) / len(batch)
    v = flat(torch.autograd.grad(primary, theta, retain_graph=True, materialize_grads=True))
    u = torch.linalg.solve(h + 3 * torch.linalg.eigvalsh(h).abs().max() * torch.eye(len(h)).to(h), v)
    explicit = flat(torch.autograd.grad(primary, phi, materialize_grads=True))
    missing = flat(torch.autograd.grad(g @ u, phi, materialize_grads=True))
    torch.testing.assert_close(flat(found), explicit - missing, rtol=1e-4, atol=1e-7)
    assert missing.norm() > 0
