"""Building blocks of the checks: batches in float64, outputs of every kind, and comparisons with clear errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from spen_plugins.batch import Batch
from spen_plugins.spaces import OutputSpace
from spen_plugins.task import Task


def double(batch: Batch) -> Batch:
    """The same batch with real numbers in float64."""
    inputs = {name: value.double() if value.is_floating_point() else value for name, value in batch.x.inputs.items()}
    gold = None if batch.gold is None else batch.gold.double()
    return replace(batch, x=replace(batch.x, inputs=inputs), gold=gold)


def collate(task: Task, examples: Sequence[Any]) -> Batch:
    return double(task.collate(list(examples), list(range(len(examples)))))


def by_length(task: Task, n: int) -> list[Any]:
    """`n` training examples, the longest last, longer than the others if lengths differ."""
    examples = sorted(task.part("train"), key=task.length)
    assert len(examples) > n, f"the task has {len(examples)} training examples; this check needs more than {n}"
    shorter = [example for example in examples if task.length(example) < task.length(examples[-1])] or examples
    return [*shorter[-(n - 1) :], examples[-1]]


def logits_like(space: OutputSpace, batch: Batch, n: int, seed: int = 0) -> Tensor:
    """Random logits `(batch, n, *variables)`."""
    assert batch.gold is not None, "the checks need training examples with gold"
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(batch), n, *batch.gold.shape[2:], generator=generator, dtype=torch.float64)


def relaxed(space: OutputSpace, batch: Batch, n: int, seed: int = 0) -> Tensor:
    """Random relaxed outputs `(batch, n, *variables)`."""
    return space.relax(logits_like(space, batch, n, seed), batch.x.mask)


def cut(value: Tensor, like: Tensor) -> Tensor:
    """`value` cut to the sizes of `like` along every axis but the batch's."""
    for axis in range(1, value.dim()):
        value = value.narrow(axis, 0, like.shape[axis])
    return value


def same(found: Tensor, wanted: Tensor, what: str) -> None:
    """Assert equality up to float64 rounding, with an error that begins with `what`."""
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9, msg=lambda detail: f"{what}\n{detail}")


def shaped(value: Tensor, shape: tuple[int, ...], what: str) -> None:
    assert tuple(value.shape) == shape, f"{what}: found shape {tuple(value.shape)}, expected {shape}"
    assert torch.isfinite(value).all(), f"{what}: some numbers are NaN or infinite"


def check_state(module: nn.Module, compute: Any) -> None:
    """Assert that a safetensors round trip of the module's state keeps the result of `compute()`, bit for bit."""
    wanted = compute()
    try:
        stored = save({name: value.contiguous() for name, value in module.state_dict().items()})
    except RuntimeError as error:
        raise AssertionError(
            f"{type(module).__name__}'s state can't be stored: {error}; tensors under two names must be one submodule"
        ) from error
    with torch.no_grad():
        for value in module.state_dict().values():
            value.zero_()
    module.load_state_dict(load(stored))
    found = compute()
    assert torch.equal(found, wanted), (
        f"{type(module).__name__} gives other numbers after its state was stored and loaded; "
        "whatever it learns must be a parameter or a buffer"
    )


def owned(prefixes: Sequence[str], key: str) -> bool:
    """True if a parameter's name is one of `prefixes` or lies below one."""
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in prefixes)
