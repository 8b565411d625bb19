"""What a piece of code changes in a model and in the objects behind it is put back."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor, nn

from spen_plugins.loop.random_state import random_state, set_random_state

LARGE = 1 << 22
"""Most numbers of an array, or of a tensor that is not trained, that are copied; a table of vectors has more."""
_CONSTANT = (str, bytes, int, float, complex, type, ModuleType, BaseModel, torch.dtype, torch.device, type(None))


@contextmanager
def put_back(model: nn.Module, others: Sequence[Any], shared: Sequence[Any] = ()) -> Iterator[None]:
    """Afterwards the model, the objects that functions hold, all that is reachable from these, and the random states
    are as before: attributes, what lists and tables hold, and the values of tensors.

    Args:
        model: the model.
        others: functions and objects besides it.
        shared: objects that are left alone.
    """
    before = random_state()
    with ExitStack() as stack:
        stack.callback(set_random_state, before)
        seen = {id(one): one for one in shared}
        waiting: list[Any] = [model, *others]
        while waiting:
            one = waiting.pop()
            if isinstance(one, _CONSTANT) or id(one) in seen:
                continue
            seen[id(one)] = one
            restore, parts = _look_at(one)
            if restore is not None:
                stack.callback(restore)
            waiting += parts
            if not isinstance(one, FunctionType) and isinstance(table := getattr(one, "__dict__", None), dict):
                stack.callback(_fill, table, dict(table))
                waiting += table.values()
        yield


def _look_at(one: Any) -> tuple[Callable[[], None] | None, Sequence[Any]]:
    """A function that puts an object back, if it can change, and the objects that it holds."""
    if isinstance(one, Tensor):
        return _values(one), ()
    if isinstance(one, np.ndarray):
        small = one.flags.writeable and one.size <= LARGE
        return partial(np.copyto, one, one.copy()) if small else None, list(one.flat) if one.dtype == object else ()
    if isinstance(one, torch.Generator):
        return partial(one.set_state, one.get_state()), ()
    if isinstance(one, np.random.Generator):
        return partial(setattr, one.bit_generator, "state", one.bit_generator.state), ()
    if isinstance(one, random.Random):
        return partial(one.setstate, one.getstate()), ()
    if isinstance(one, (tuple, frozenset)):
        return None, list(one)
    if isinstance(one, partial):
        return None, [one.func, *one.args, *one.keywords.values()]
    if isinstance(one, MethodType):
        return None, [one.__self__, one.__func__]
    if isinstance(one, FunctionType):
        return None, list(one.__closure__ or ())
    if isinstance(one, CellType):
        try:
            held = one.cell_contents
        except ValueError:  # empty
            return None, ()
        return partial(setattr, one, "cell_contents", held), [held]
    if isinstance(one, (list, set, deque)):
        return partial(_fill, one, list(one)), list(one)
    if isinstance(one, dict):
        return partial(_fill, one, dict(one)), list(one.values())
    return None, ()


def _fill(container: Any, held: Any) -> None:
    """Put what it held into a container that has changed."""
    now = container if isinstance(held, dict) else list(container)
    if isinstance(held, dict):
        same = len(now) == len(held) and all(key in now and now[key] is value for key, value in held.items())
    else:
        same = len(now) == len(held) and all(a is b for a, b in zip(now, held, strict=True))
    if not same:
        container.clear()
        (container.extend if hasattr(container, "extend") else container.update)(held)


def _values(tensor: Tensor) -> Callable[[], None] | None:
    """A function that puts a tensor's values and gradient back."""
    if tensor.layout is not torch.strided or tensor.is_inference() or tensor.is_meta:
        return None
    data, grad, trained = tensor.data, tensor.grad if tensor.is_leaf else None, tensor.requires_grad
    copy = data.clone() if tensor.numel() <= LARGE or (trained and tensor.is_leaf) else None

    def restore() -> None:
        if copy is not None:
            with suppress(RuntimeError):  # expanded: several places of one number
                data.copy_(copy)
        if tensor.is_leaf:
            tensor.data, tensor.grad = data, grad
            tensor.requires_grad_(trained)

    return restore
