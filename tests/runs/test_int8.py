"""Encoders that multiply in int8: products by hand, saving, and errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import spen_plugins as sp
from spen_plugins.errors import ConfigError
from spen_plugins.nn import Lstm, int8
from spen_plugins.nn.int8 import Int8Linear, has_bfloat16, has_int8, multiply_in_int8
from spen_plugins.runs.predict import precision
from tests.loaded import small_bert

WORDS = ["the", "girl", "gave", "boy", "a", "book"]

multiplies = pytest.mark.skipif(not has_int8(), reason="requires an x86 processor and a torch with oneDNN")


def compute_by_hand(linear: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """In float64, with inputs and weights rounded as they should be."""
    weight, x = linear.weight.detach().double(), x.double()
    scale, step = (part.abs().amax(-1, keepdim=True) / top for part, top in ((weight, 127), (x, int8.largest_input())))
    product = ((x / step).round() * step) @ ((weight / scale).round() * scale).T
    return product if linear.bias is None else product + linear.bias.detach().double()


@multiplies
@pytest.mark.parametrize("top", [None, 63])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(70,), (3, 70), (2, 5, 70)], ids=str)
def test_products_match_those_of_rounded_numbers(
    bias: bool, shape: tuple[int, ...], top: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if top is not None:
        monkeypatch.setattr(int8, "largest_input", lambda: top)
    rng = torch.Generator().manual_seed(0)
    linear = nn.Linear(70, 66, bias=bias)
    nn.init.normal_(linear.weight, generator=rng)
    x = torch.randn(shape, generator=rng) + torch.linspace(-1, 2, 70)
    with torch.no_grad():
        product = Int8Linear(linear)(x)
        assert product.shape == (*shape[:-1], 66) and product.dtype == torch.float32
        error = (product - compute_by_hand(linear, x)).abs()
        assert (error < 1e-4).double().mean() > 0.5
        assert (error < 0.5).all()  # where an input is half-way between two, float32 may round it the other way
        assert Int8Linear(linear)(x.new_zeros(0, 70)).shape == (0, 66)


@multiplies
def test_rows_do_not_depend_on_each_other() -> None:
    x = torch.randn(30, 70, generator=torch.Generator().manual_seed(0)) * torch.logspace(-4, 4, 30).unsqueeze(1)
    x[3], x[5] = torch.nan, torch.inf
    layer = Int8Linear(nn.Linear(70, 66))
    with torch.no_grad():
        together = layer(x)
        assert not together[[3, 5]].isfinite().any()
        for row in (0, 1, 2, 4, 29):
            assert torch.equal(together[row], layer(x[row : row + 1])[0]) and together[row].isfinite().all()


@multiplies
def test_sums_of_the_largest_products_are_not_cut_off() -> None:
    linear = nn.Linear(70, 66, bias=False)
    nn.init.ones_(linear.weight)
    with torch.no_grad():
        torch.testing.assert_close(Int8Linear(linear)(torch.ones(2, 70)), torch.full((2, 66), 70.0))


@multiplies
def test_inputs_have_7_bits_where_sums_would_be_cut_off() -> None:
    code = "from spen_plugins.nn.int8 import largest_input; print(largest_input())"
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout == "63\n"
    )


@multiplies
def test_zeros_are_exact() -> None:
    linear = nn.Linear(70, 66)
    with torch.no_grad():
        assert torch.equal(Int8Linear(linear)(torch.zeros(2, 70)), linear.bias.expand(2, 66))


@multiplies
def test_narrow_layers_and_names_do_not_change() -> None:
    net = nn.ModuleDict({"wide": nn.Linear(70, 66), "narrow": nn.Linear(70, 8)})
    original = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert multiply_in_int8(net) == 1
    assert multiply_in_int8(net) == 0  # there are no more
    assert isinstance(net["wide"], Int8Linear) and type(net["narrow"]) is nn.Linear
    assert original.keys() == net.state_dict().keys()
    assert all(torch.equal(tensor, original[name]) for name, tensor in net.state_dict().items())


def test_a_processor_without_lstms_in_bfloat16_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")

    monkeypatch.setattr(nn.LSTM, "forward", fail)
    lstm, h = Lstm(8, 16), torch.zeros(5, 3, 8)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(ConfigError, match="can't run LSTMs in bfloat16; use"):
        lstm(h)
    with pytest.raises(RuntimeError, match="could not create"):
        lstm(h)


@pytest.mark.skipif(not has_bfloat16(), reason="requires a processor that multiplies in bfloat16")
def test_lstms_multiply_in_bfloat16() -> None:
    h = torch.randn(5, 3, 8, generator=torch.Generator().manual_seed(0))
    lstm = Lstm(8, 16)
    with torch.no_grad():
        plain, _ = lstm(h)
        lstm.multiplies_in = torch.bfloat16
        rounded, _ = lstm(h)
    assert rounded.dtype == torch.float32
    assert 0 < (rounded - plain).abs().max() < 0.05


@multiplies
def test_a_run_predicts_in_int8_and_saves_its_own_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bert = small_bert(tmp_path / "bert", WORDS)
    few = {"trainer.epochs": 1, "method": "cross_entropy", "reading": "sentence"}
    sp.train("srl_seal", encoder=bert, out=tmp_path / "run", quiet=True, device="cpu", **few)
    with pytest.raises(ConfigError, match=r"the net of .*run has none: leave precision out"):
        sp.load(tmp_path / "run", precision="int8")  # all of its layers are narrow
    monkeypatch.setattr(int8, "NARROW", 1)
    plain, quantised = sp.load(tmp_path / "run"), sp.load(tmp_path / "run", precision="int8")
    assert sum(isinstance(part, Int8Linear) for part in quantised.model.modules()) == 6
    lstms = [part.multiplies_in for part in quantised.model.inference_net.modules() if isinstance(part, Lstm)]
    assert set(lstms) == {torch.bfloat16 if has_bfloat16() else None}
    items = [{"words": ["The", "girl", "gave", "a", "book"], "predicate": 2}]
    [(rounded, _, _)], [(exact, _, _)] = (
        predictor.proposals([predictor.task.parse(item) for item in items]) for predictor in (quantised, plain)
    )
    gap = (rounded.mean - exact.mean).abs().max()
    assert 0 < gap < 0.1
    quantised.save(tmp_path / "copy")
    copied = sp.load(tmp_path / "copy").model.state_dict()
    assert all(torch.equal(tensor, copied[name]) for name, tensor in plain.model.state_dict().items())
    monkeypatch.setattr(precision, "has_int8", lambda: False)
    with pytest.raises(ConfigError, match="requires an x86 processor"):
        sp.load(tmp_path / "run", precision="int8")


def test_a_run_without_an_encoder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_int8", lambda: True)
    few = {"trainer.epochs": 1, "features.hidden": [8]}
    sp.train("labels", method="cross_entropy", out=tmp_path / "run", quiet=True, device="cpu", **few)
    with pytest.raises(ConfigError, match=r"the net of .*run has none: leave precision out"):
        sp.load(tmp_path / "run", precision="int8")
