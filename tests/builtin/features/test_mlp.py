"""The mlp feature network: bags of ones equal a dense linear layer, in value and in every derivative."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.builtin.features.mlp import BagLinear, Mlp
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.spaces.sparse import Lists
from tests.loaded import parsed

INDICES, OFFSETS = torch.tensor([0, 3, 4, 1, 3]), torch.tensor([0, 3, 3])
DENSE = torch.tensor([[1, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0]], dtype=torch.float64)
VALUES = torch.tensor([0.5, -1.0, 2.0, 3.0, 0.25], dtype=torch.float64)
WEIGHTED = torch.tensor([[0.5, 0, 0, -1, 2, 0], [0] * 6, [0, 3, 0, 0.25, 0, 0]], dtype=torch.float64)


def make_task(size: int = 6, binary: bool = True, space=None) -> SimpleNamespace:
    return SimpleNamespace(inputs=sp.VectorInputs(size, binary), space=space or sp.LabelSet(["a", "b", "c"]))


def make_bags() -> sp.X:
    return sp.X({"indices": INDICES, "offsets": OFFSETS}, None, 3)


@pytest.mark.parametrize(("values", "dense"), [(None, DENSE), (VALUES, WEIGHTED)], ids=["ones", "values"])
def test_bag_equals_dense_linear_in_value_and_derivatives(values, dense):
    layer = BagLinear(6, 4).double()
    nn.init.normal_(layer.bias)
    weight, bias = (p.detach().clone().requires_grad_() for p in (layer.weight, layer.bias))
    out, expected = layer(INDICES, OFFSETS, values), F.linear(dense, weight.T, bias)
    torch.testing.assert_close(out, expected)
    out.pow(3).sum().backward()
    expected.pow(3).sum().backward()
    torch.testing.assert_close(layer.weight.grad, weight.grad)
    torch.testing.assert_close(layer.bias.grad, bias.grad)
    torch.testing.assert_close(out[1], layer.bias)  # an example without features

    def value(w):
        return torch.tanh(Lists(INDICES, OFFSETS, w.shape[0], values).sums(w))

    assert torch.autograd.gradcheck(value, (weight,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(value, (weight,), check_fwd_over_rev=True)


@pytest.mark.parametrize("binary", [True, False])
def test_layers(binary):
    config = Mlp.Config(hidden=[5, 7, 3], dropout=0.5)
    net = Mlp(config, make_task(binary=binary))
    x = make_bags() if binary else sp.X({"vector": DENSE.float()}, None, 3)
    assert net(x).shape == (3, 3) and net.output_dim == 3
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.5, 0.5]
    assert isinstance(net.rest[-1], nn.Softplus)  # no dropout after the last layer
    net.eval()
    first = net.first.weight if binary else net.first.weight.T
    hidden = F.softplus(DENSE.float() @ first + net.first.bias)
    hidden = F.softplus(net.rest[2](hidden))
    torch.testing.assert_close(net(x), F.softplus(net.rest[5](hidden)))


@pytest.mark.parametrize("binary", [True, False])
def test_initial_weights_are_kaiming_uniform(binary):
    torch.manual_seed(0)
    net = Mlp(Mlp.Config(hidden=[300, 200]), make_task(size=500, binary=binary))
    for weight, fan_in in ((net.first.weight, 500), (net.rest[1].weight, 300)):
        bound = math.sqrt(6 / fan_in)  # variance bound²/3 = 2 / fan_in
        assert weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert not net.first.bias.any() and not net.rest[1].bias.any()


def test_dropout_per_layer_and_bad_configs():
    net = Mlp(Mlp.Config(hidden=[4, 4], dropout=[0, 0.25]), make_task())
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.25]
    with pytest.raises(sp.ConfigError, match="found 3 numbers"):
        parsed("features", "mlp", hidden=[4, 4], dropout=[0.1, 0.1, 0.1])
    with pytest.raises(sp.ConfigError, match=r"features\.dropout\.0': found 1\.5; input should be less than 1"):
        parsed("features", "mlp", hidden=[4], dropout=[1.5])
    with pytest.raises(sp.ConfigError, match=r"features\.hidden\.0': found 0"):
        parsed("features", "mlp", hidden=[0])
    with pytest.raises(sp.ConfigError, match="sentences"):
        Mlp(Mlp.Config(), SimpleNamespace(inputs=sp.WordInputs(["a"], {})))


def test_independent_net():
    for space, bias in ((sp.LabelSet(["a", "b"]), False), (sp.TagSequence(["a", "b"]), True)):
        task = make_task(space=space)
        net = Independent(Independent.Config(), task, Mlp(Mlp.Config(hidden=[4]), task))
        assert (net.output.bias is not None) == bias
    net = Independent(Independent.Config(bias=True), make_task(), Mlp(Mlp.Config(hidden=[4]), make_task()))
    proposal = net(make_bags())
    assert proposal.logits.shape == (3, 1, 3) and proposal.mask is None
    torch.testing.assert_close(proposal.logits[:, 0], net.output(net.features(make_bags())))
    torch.testing.assert_close(proposal.features, net.features(make_bags()))
