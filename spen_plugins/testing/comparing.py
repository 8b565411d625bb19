"""The check of configs, and building blocks of the other checks: batches in float64, outputs of every kind, comparisons
with clear errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from spen_plugins.batch import Batch
from spen_plugins.loop.mistakes import find_unregistered
from spen_plugins.settings.config import Config
from spen_plugins.settings.fields import fields
from spen_plugins.spaces import OutputSpace
from spen_plugins.task import Task

T = TypeVar("T")
_NUMBERS = (float("nan"), float("inf"), -float("inf"))
_OF_EVERY_MODULE = vars(nn.Module()).keys()


def collate(task: Task, examples: Sequence[Any]) -> Batch:
    """A batch with real numbers in float64."""
    batch = double(task.collate(list(examples), list(range(len(examples)))))
    mask = batch.x.mask
    assert mask is None or mask.dtype == torch.bool, f"the task's mask: found {mask.dtype}, expected torch.bool"
    return batch


def double(batch: Batch) -> Batch:
    """The same batch with real numbers in float64."""
    inputs = {name: value.double() if value.is_floating_point() else value for name, value in batch.x.inputs.items()}
    gold = None if batch.gold is None else batch.gold.double()
    return replace(batch, x=replace(batch.x, inputs=inputs), gold=gold)


def remove_gold(batch: Batch, labelled: Tensor) -> Batch:
    """The same batch with gold in the `labelled` rows alone."""
    has_gold = labelled.view(-1, *[1] * (batch.gold.dim() - 1))
    return replace(batch, labelled=labelled, gold=batch.gold * has_gold if labelled.any() else None)


def pick_by_length(task: Task, n: int) -> list[Any]:
    """`n` training examples, the longest last, longer than the others if lengths differ."""
    examples = sorted(task.part("train"), key=task.length)
    assert len(examples) > n, f"the task has {len(examples)} training examples; this check needs more than {n}"
    shorter_examples = [example for example in examples if task.length(example) < task.length(examples[-1])] or examples
    return [*shorter_examples[-(n - 1) :], examples[-1]]


def relaxed(space: OutputSpace, batch: Batch, n: int, seed: int = 0) -> Tensor:
    """Random relaxed outputs `(batch, n, *variables)`."""
    assert batch.gold is not None, "the checks need training examples with gold"
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(batch), n, *batch.gold.shape[2:], generator=generator, dtype=torch.float64)
    return space.relax(logits, batch.x.mask)


def cut(value: Tensor, like: Tensor) -> Tensor:
    """`value` cut to the sizes of `like` along every axis but the batch's."""
    for axis in range(1, value.dim()):
        value = value.narrow(axis, 0, like.shape[axis])
    return value


def assert_same(actual: Tensor, expected: Tensor, message: str) -> None:
    """Assert equality up to float64 rounding, with an error that begins with `message`."""
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9, msg=lambda detail: f"{message}\n{detail}")


def assert_same_rows(actual: Tensor, expected: Tensor, redraw: Callable[[], Tensor], message: str) -> None:
    """Assert equality, as `assert_same` does, unless the numbers are random: then `redraw` returns others each time."""
    if not torch.allclose(actual, expected, 1e-9, 1e-9) and torch.equal(redraw(), redraw()):
        assert_same(actual, expected, message)


def assert_shape(value: Tensor, shape: tuple[int, ...], label: str) -> None:
    assert isinstance(value, Tensor), f"{label}: found {type(value).__name__}, expected a tensor of shape {shape}"
    assert tuple(value.shape) == shape, f"{label}: found shape {tuple(value.shape)}, expected {shape}"
    assert torch.isfinite(value).all(), f"{label}: some numbers are NaN or infinite"


def check_state(module: nn.Module, compute: Callable[[], Tensor]) -> None:
    """Assert that `compute()` returns the same result, bit for bit, after a call in training mode and once the module's
    state is loaded from safetensors while its plain attributes are as before that call."""
    earlier = _list_attributes(module, _copy)
    module.train()
    compute()
    for path, inner in module.named_modules():
        assert not (isinstance(inner, _BatchNorm) and inner.training), (
            f"{'.'.join(filter(None, (type(module).__name__, path)))} is a {type(inner).__name__} in training mode, so "
            "an example's result depends on other examples of the batch; expected another norm, such as LayerNorm"
        )
    module.eval()
    expected = compute()
    data = save({key: value.clone().contiguous() for key, value in module.state_dict().items()})
    learned = _list_attributes(module, lambda value: value)
    _set_attributes(earlier)
    with torch.no_grad():
        for value in module.state_dict().values():
            value.zero_()
    module.load_state_dict(load(data))
    try:
        loaded = compute()
    finally:
        _set_attributes(learned)
    if torch.equal(loaded, expected):
        return
    for (inner, values), (_, earlier_values) in zip(learned, earlier, strict=True):
        for name, value in values.items():
            if isinstance(value, Tensor | float | int) and not _are_equal(value, earlier_values.get(name)):
                raise AssertionError(
                    f"{type(inner).__name__}.{name} changes in training, but a plain tensor or number is not saved; "
                    f"expected a buffer, self.register_buffer({name!r}, ...)"
                )
    raise AssertionError(
        f"{type(module).__name__} returns other numbers after its state was saved and loaded; "
        "whatever it learns must be a parameter or a buffer"
    )


def _list_attributes(module: nn.Module, change: Callable[[Any], Any]) -> list[tuple[nn.Module, dict[str, Any]]]:
    """The attributes of a module and of those in it, changed, without those that every module has."""
    return [
        (inner, {name: change(value) for name, value in vars(inner).items() if name not in _OF_EVERY_MODULE})
        for inner in module.modules()
    ]


def _copy(value: Any) -> Any:
    """A copy of a tensor, list, dict or set; other values as they are."""
    if isinstance(value, Tensor):
        return value.clone()
    return copy(value) if type(value) in (list, dict, set) else value


def _set_attributes(attributes: Sequence[tuple[nn.Module, Mapping[str, Any]]]) -> None:
    """Gives each module just these attributes, beside those that every module has."""
    for inner, values in attributes:
        for name in vars(inner).keys() - _OF_EVERY_MODULE - values.keys():
            del vars(inner)[name]
        vars(inner).update(values)


def _are_equal(value: Tensor | float, other: Any) -> bool:
    if isinstance(value, Tensor) or isinstance(other, Tensor):
        return isinstance(value, Tensor) and isinstance(other, Tensor) and torch.equal(value, other)
    return value == other


def make_ready(module: nn.Module, *beside: nn.Module) -> str:
    """Put a module in float64 and in evaluation mode; returns the name of its class.

    Asserts that its attributes, lists and dicts hold no weights but its own and those of modules `beside` it: other
    weights would be ignored here and in training.
    """
    assert isinstance(module, nn.Module), f"found {module!r}; expected an instance, such as Class(Class.Config(), task)"
    message = find_unregistered(module, *beside)
    assert message is None, message
    module.double().eval()
    return type(module).__name__


def assert_kept(call: Callable[[], T], tensors: Mapping[str, Tensor], name: str) -> T:
    """Assert that a call changes none of these tensors; returns its result."""
    copies = {key: value.clone() for key, value in tensors.items()}
    result = call()
    for key, value in tensors.items():
        torch.testing.assert_close(
            value, copies[key], rtol=0, atol=0, equal_nan=True, msg=f"{name} changes {key!r} in place; expected a copy"
        )
    return result


def list_idle(value: Tensor, parameters: Mapping[str, Tensor], retain_graph: bool = False) -> list[str]:
    """Names of the parameters on which a scalar does not depend."""
    if not (parameters and value.requires_grad):
        return list(parameters)
    gradients = torch.autograd.grad(value, list(parameters.values()), retain_graph=retain_graph, allow_unused=True)
    return [name for name, gradient in zip(parameters, gradients, strict=True) if gradient is None]


def is_below(prefixes: Sequence[str], key: str) -> bool:
    """True if a parameter's name is one of `prefixes` or lies below one."""
    return any(key == prefix or key.startswith(f"{prefix}.") for prefix in prefixes)


def check_config(config: type[Config]) -> None:
    """Check a component's `Config`, inner tables included: no field accepts NaN or infinity, alone, in a list or in a
    table; each has a docstring; and its default is valid."""
    assert isinstance(config, type) and issubclass(config, Config), (
        f"found {config!r}; expected a class that extends spen_plugins.Config, such as Quadratic.Config"
    )
    try:
        config.model_validate_json("{}")
    except ValidationError as error:
        for detail in error.errors():
            key = ".".join(map(str, detail["loc"]))
            assert detail["type"] == "missing", f"{config.__qualname__}: the default of {key!r}: {detail['msg']}"
    for field in fields(config, nested=True):
        key = f"{config.__qualname__}.{field.name}"
        assert field.doc, f"{key} has no docstring"
        path = field.name.split(".")
        for number in _NUMBERS:
            for value in (number, [number], {"a": number}):
                assert not _accepts(config, path, value), f"{key} accepts {value}; expected finite numbers only"


def _accepts(config: type[Config], path: Sequence[str], value: Any) -> bool:
    """True unless an error is about this field; other fields may be missing."""
    table = value
    for key in reversed(path):
        table = {key: table}
    try:
        config.model_validate_json(json.dumps(table))
    except ValidationError as error:
        return not any(detail["loc"][0] == path[0] and path[-1] in detail["loc"] for detail in error.errors())
    return True
