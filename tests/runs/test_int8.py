"""Encoders that multiply in int8: products by hand, what is saved, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import spen_plugins as sp
from spen_plugins.errors import ConfigError
from spen_plugins.nn import int8
from spen_plugins.nn.int8 import TOP, Int8Linear, has_int8, multiply_in_int8
from spen_plugins.runs.predict import precision
from tests.loaded import small_bert

WORDS = ["the", "girl", "gave", "boy", "a", "book"]

pytestmark = pytest.mark.skipif(not has_int8(), reason="requires an x86 processor and a torch with oneDNN")


def by_hand(linear: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """In float64, with inputs and weights rounded as they should be."""
    weight, x = linear.weight.detach().double(), x.double()
    scale = weight.abs().amax(1, keepdim=True) / 127
    low, high = min(x.min().item(), 0.0), max(x.max().item(), 0.0)
    step = (high - low) / TOP
    offset = round(-low / step)
    rounded = ((x / step + offset).add(0.5).floor() - offset) * step
    product = rounded @ ((weight / scale).round() * scale).T
    return product if linear.bias is None else product + linear.bias.detach().double()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(70,), (3, 70), (2, 5, 70)], ids=str)
@pytest.mark.parametrize("move", [-3.0, 0.0, 3.0])
def test_products_are_those_of_rounded_numbers(bias: bool, shape: tuple[int, ...], move: float) -> None:
    rng = torch.Generator().manual_seed(0)
    linear = nn.Linear(70, 66, bias=bias)
    nn.init.normal_(linear.weight, generator=rng)
    x = torch.randn(shape, generator=rng) + move
    with torch.no_grad():
        found = Int8Linear(linear)(x)
        assert found.shape == (*shape[:-1], 66) and found.dtype == torch.float32
        # a number half-way between two may go either way in float32: one step of one input
        assert (found - by_hand(linear, x)).abs().max() < 0.5
        assert (found - by_hand(linear, x)).abs().median() < 1e-4
        assert (found - linear(x)).abs().mean() < 0.02 * linear(x).abs().max()


def test_zeros_are_exact_and_nan_is_kept() -> None:
    linear = nn.Linear(70, 66)
    whole = Int8Linear(linear)
    with torch.no_grad():
        assert torch.equal(whole(torch.zeros(2, 70)), linear.bias.expand(2, 66))
        assert whole(torch.full((2, 70), torch.nan)).isnan().all()
        assert whole(torch.tensor([[torch.inf] * 70])).isnan().all()


def test_narrow_layers_stay_and_names_do_too() -> None:
    net = nn.ModuleDict({"wide": nn.Linear(70, 66), "narrow": nn.Linear(70, 8)})
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    multiply_in_int8(net)
    assert isinstance(net["wide"], Int8Linear) and type(net["narrow"]) is nn.Linear
    assert before.keys() == net.state_dict().keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_a_run_predicts_in_int8_and_saves_its_own_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bert = small_bert(tmp_path / "bert", WORDS)
    few = {"trainer.epochs": 1}
    sp.train("srl_seal", encoder=bert, method="cross_entropy", out=tmp_path / "run", quiet=True, device="cpu", **few)
    monkeypatch.setattr(int8, "NARROW", 1)
    plain, whole = sp.load(tmp_path / "run"), sp.load(tmp_path / "run", precision="int8")
    assert sum(isinstance(part, Int8Linear) for part in whole.model.modules()) == 6
    items = [{"words": ["The", "girl", "gave", "a", "book"], "predicate": 2}]
    [(ours, _, _)], [(theirs, _, _)] = (
        one.proposals([one.task.parse(item) for item in items]) for one in (whole, plain)
    )
    gap = (ours.mean - theirs.mean).abs().max()
    assert 0 < gap < 0.1
    whole.save(tmp_path / "copy")
    copied = sp.load(tmp_path / "copy").model.state_dict()
    assert all(torch.equal(tensor, copied[name]) for name, tensor in plain.model.state_dict().items())
    monkeypatch.setattr(precision, "has_int8", lambda: False)
    with pytest.raises(ConfigError, match="requires an x86 processor"):
        sp.load(tmp_path / "run", precision="int8")


def test_a_run_without_an_encoder_is_named(tmp_path: Path) -> None:
    few = {"trainer.epochs": 1, "features.hidden": [8]}
    sp.train("labels", method="cross_entropy", out=tmp_path / "run", quiet=True, device="cpu", **few)
    with pytest.raises(ConfigError, match=r"pretrained encoders, but the net of .*run has none"):
        sp.load(tmp_path / "run", precision="int8")
