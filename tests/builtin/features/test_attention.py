"""Attention in float32 inside training in bfloat16."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.features.tuning import MOST, Float32Attention
from tests.builtin.features.test_encoders import SENTENCE, ready, save_model

HALF = torch.bfloat16


class Seen(TorchFunctionMode):
    """Types that attention is computed in."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: list[torch.dtype] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            half = torch.is_autocast_enabled("cpu")
            self.dtypes.append(HALF if half else args[0].dtype)
        return func(*args, **(kwargs or {}))


def inputs(length: int = 5, dtype: torch.dtype = HALF, learned: bool = True) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 3, length, 4).to(dtype).requires_grad_(learned) for _ in range(3)]


def attended(mode: bool, parts: list[Tensor], *args: Any, autocast: bool = True, **kwargs: Any) -> tuple[Tensor, Any]:
    seen = Seen()
    with ExitStack() as stack:
        stack.enter_context(torch.autocast("cpu", HALF, enabled=autocast))
        stack.enter_context(seen)
        if mode:
            stack.enter_context(Float32Attention())
        found = F.scaled_dot_product_attention(*parts, *args, **kwargs)
    return found, seen.dtypes


@pytest.mark.parametrize("mask", [None, torch.bool, HALF, torch.float32])
def test_values_and_gradients_are_those_of_float32(mask) -> None:
    """On the same inputs; they come back in the inputs' type."""
    allowed = torch.tensor([[True, True, True, False, False], [True] * 5]).reshape(2, 1, 1, 5)
    if mask not in (None, torch.bool):
        allowed = torch.zeros(allowed.shape, dtype=mask).masked_fill(~allowed, torch.finfo(HALF).min)
    half, whole = inputs(), [part.detach().float().requires_grad_() for part in inputs()]
    kept = None if mask is None else allowed
    y, dtypes = attended(True, half, kept)
    assert dtypes == [torch.float32] and y.dtype == HALF
    exact = F.scaled_dot_product_attention(*whole, allowed.float() if mask in (HALF, torch.float32) else kept)
    torch.testing.assert_close(y, exact.to(HALF), atol=0, rtol=0)
    weights = torch.randn(y.shape).to(HALF)
    found = torch.autograd.grad(y, half, weights)
    wanted = torch.autograd.grad(exact, whole, weights.float())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other.to(HALF), atol=0, rtol=0)


def test_a_mask_by_name_is_taken() -> None:
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    y, dtypes = attended(True, inputs(), attn_mask=mask, dropout_p=0.0, scale=0.3)
    assert dtypes == [torch.float32]
    torch.testing.assert_close(y, attended(True, inputs(), mask, 0.0, scale=0.3)[0])


@pytest.mark.parametrize(
    "case",
    ["no gradients recorded", "nothing to learn", "dropout", "no autocast", "long", "float64"],
)
def test_other_attention_stays_as_it_is(case) -> None:
    length = MOST // 4 + 1 if case == "long" else 5
    dtype = torch.float64 if case == "float64" else HALF
    parts = [part[:1, :1] for part in inputs(length, dtype, learned=case != "nothing to learn")]
    autocast, dropout = case != "no autocast", 0.5 if case == "dropout" else 0.0
    found = []
    with torch.set_grad_enabled(case != "no gradients recorded"):
        for mode in (False, True):
            torch.manual_seed(1)
            found.append(attended(mode, parts, None, dropout, autocast=autocast))
    (plain, _), (y, dtypes) = found
    assert dtypes == [HALF]
    torch.testing.assert_close(y, plain, atol=0, rtol=0)


def test_an_encoder_trains_with_it_and_predicts_without(task, tmp_path) -> None:
    network = ready(task, Transformer, model=save_model(tmp_path), attention_dropout=0)
    x = task.collate([task.parse({"words": SENTENCE, "predicate": 1})]).x
    for learns, autocast, wanted in [(True, True, torch.float32), (False, True, HALF), (True, False, torch.float32)]:
        seen = Seen()
        with torch.set_grad_enabled(learns), torch.autocast("cpu", HALF, enabled=autocast), seen:
            network.train(learns)(x)
        assert seen.dtypes == [wanted] * 2
