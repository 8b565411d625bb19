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
from tests.builtin.features.test_encoders import SENTENCE, build_network, save_model

HALF = torch.bfloat16


class TypeRecorder(TorchFunctionMode):
    """Records the types in which attention is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: list[torch.dtype] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            half = torch.is_autocast_enabled("cpu")
            self.dtypes.append(HALF if half else args[0].dtype)
        return func(*args, **(kwargs or {}))


def make_inputs(length: int = 5, dtype: torch.dtype = HALF, learned: bool = True) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 3, length, 4).to(dtype).requires_grad_(learned) for _ in range(3)]


def compute_attention(
    mode: bool, parts: list[Tensor], *args: Any, autocast: bool = True, **kwargs: Any
) -> tuple[Tensor, Any]:
    recorder = TypeRecorder()
    with ExitStack() as stack:
        stack.enter_context(torch.autocast("cpu", HALF, enabled=autocast))
        stack.enter_context(recorder)
        if mode:
            stack.enter_context(Float32Attention())
        output = F.scaled_dot_product_attention(*parts, *args, **kwargs)
    return output, recorder.dtypes


@pytest.mark.parametrize("mask", [None, torch.bool, HALF, torch.float32])
def test_values_and_gradients_equal_those_of_float32(mask) -> None:
    """Results for the same inputs, returned in the inputs' type."""
    allowed = torch.tensor([[True, True, True, False, False], [True] * 5]).reshape(2, 1, 1, 5)
    if mask not in (None, torch.bool):
        allowed = torch.zeros(allowed.shape, dtype=mask).masked_fill(~allowed, torch.finfo(HALF).min)
    half, full = make_inputs(), [part.detach().float().requires_grad_() for part in make_inputs()]
    argument = None if mask is None else allowed
    y, dtypes = compute_attention(True, half, argument)
    assert dtypes == [torch.float32] and y.dtype == HALF
    exact = F.scaled_dot_product_attention(*full, allowed.float() if mask in (HALF, torch.float32) else argument)
    torch.testing.assert_close(y, exact.to(HALF), atol=0, rtol=0)
    weights = torch.randn(y.shape).to(HALF)
    gradients = torch.autograd.grad(y, half, weights)
    expected = torch.autograd.grad(exact, full, weights.float())
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient.to(HALF), atol=0, rtol=0)


def test_a_mask_can_be_passed_by_name() -> None:
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    y, dtypes = compute_attention(True, make_inputs(), attn_mask=mask, dropout_p=0.0, scale=0.3)
    assert dtypes == [torch.float32]
    torch.testing.assert_close(y, compute_attention(True, make_inputs(), mask, 0.0, scale=0.3)[0])


@pytest.mark.parametrize(
    "case",
    ["no gradients recorded", "nothing to learn", "dropout", "no autocast", "long", "float64"],
)
def test_other_attention_is_unchanged(case) -> None:
    length = MOST // 4 + 1 if case == "long" else 5
    dtype = torch.float64 if case == "float64" else HALF
    parts = [part[:1, :1] for part in make_inputs(length, dtype, learned=case != "nothing to learn")]
    autocast, dropout = case != "no autocast", 0.5 if case == "dropout" else 0.0
    results = []
    with torch.set_grad_enabled(case != "no gradients recorded"):
        for mode in (False, True):
            torch.manual_seed(1)
            results.append(compute_attention(mode, parts, None, dropout, autocast=autocast))
    (plain, _), (y, dtypes) = results
    assert dtypes == [HALF]
    torch.testing.assert_close(y, plain, atol=0, rtol=0)


def test_an_encoder_uses_it_only_in_training(task, tmp_path) -> None:
    network = build_network(task, Transformer, model=save_model(tmp_path), attention_dropout=0)
    x = task.collate([task.parse({"words": SENTENCE, "predicate": 1})]).x
    for learns, autocast, dtype in [(True, True, torch.float32), (False, True, HALF), (True, False, torch.float32)]:
        recorder = TypeRecorder()
        with torch.set_grad_enabled(learns), torch.autocast("cpu", HALF, enabled=autocast), recorder:
            network.train(learns)(x)
        assert recorder.dtypes == [dtype] * 2
