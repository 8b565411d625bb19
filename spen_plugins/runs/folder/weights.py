"""Weights by name: selection of saved tensors, and loading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from spen_plugins.errors import RunError
from spen_plugins.files import check_finite


def list_tensors(nets: nn.Module) -> dict[str, Tensor]:
    """Tensors to save by name; shared tensors only under their first name."""
    tensors: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in nets.state_dict(keep_vars=True).items():
        tensors.setdefault(id(tensor), (name, tensor))
    return dict(tensors.values())


def narrow(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A float tensor as `dtype`, unless one of its numbers is too large; other tensors are unchanged."""
    if not tensor.is_floating_point():
        return tensor
    converted = tensor.to(dtype)
    return converted if torch.equal(converted.isfinite(), tensor.isfinite()) else tensor


def select_below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors named `prefix.…`, by the rest of their names."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(prefix + ".")}


def copy_tensors(saved: Mapping[str, Tensor], targets: Mapping[str, Tensor], run: Path) -> None:
    """Copy saved tensors into a model's tensors."""
    missing, extra = sorted(targets.keys() - saved.keys()), sorted(saved.keys() - targets.keys())
    shapes = [
        f"{name} {tuple(saved[name].shape)} instead of {tuple(targets[name].shape)}"
        for name in targets.keys() & saved.keys()
        if saved[name].shape != targets[name].shape
    ]
    for problem, names in (("lack", missing), ("have unknown", extra), ("have other shapes:", sorted(shapes))):
        if names:
            suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise RunError(f"the weights of {run} don't fit this config: they {problem} {', '.join(names[:3])}{suffix}")
    try:
        for name, tensor in targets.items():
            check_finite(name, saved[name], tensor.data)
        for name, tensor in targets.items():
            tensor.data.copy_(saved[name])
    except ValueError as error:
        raise RunError(f"the weights of {run} don't fit this config: {error}") from None
