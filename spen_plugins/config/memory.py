"""The memory that an experiment takes at least: more than is left gets refused before it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from spen_plugins.config.node import Node
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.loop.ownership import assign

if TYPE_CHECKING:
    from spen_plugins.config.experiment import Built, Experiment
    from spen_plugins.player import Player
    from spen_plugins.task import Task
    from spen_plugins.trainer import Stage

OUTPUTS = ("samples", "random", "k")
"""Keys of the nets' tables that number outputs of an example which are held at once."""
_MAKERS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange, torch.eye}
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_FLOAT = 4


def available(device: torch.device | str = "cpu") -> int:
    """Bytes that a device has left: of a GPU's own memory, or of the machine's, swap included, or all that a container
    may take if that is less."""
    device = torch.device(device)
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, for what comes next
        return torch.cuda.mem_get_info(device)[0] + kept
    limits = [psutil.virtual_memory().available + psutil.swap_memory().free]
    for path in map(Path, _CGROUPS):
        text = path.read_text().strip() if path.is_file() else ""
        limits += [int(text)] if text.isdigit() else []
    return min(limits)


class Limit(TorchFunctionMode):
    """Inside, parameters of new modules and single new tensors take at most so many bytes together.

    Args:
        most: bytes.
        nodes: whose components are built, for the message.

    Raises:
        ConfigError: more is asked for; nothing of that size is made.
    """

    def __init__(self, most: int, nodes: Iterable[Node]) -> None:
        super().__init__()
        self._most, self._nodes, self._taken = most, list(nodes), 0
        self._seen: set[int] = set()

    def __enter__(self) -> Limit:
        self._hook = register_module_parameter_registration_hook(self._count)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._hook.remove()

    def __torch_function__(
        self, make: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if make in _MAKERS:
            self._check(_size(make, args, dict(kwargs or {})))
        return make(*args, **(kwargs or {}))

    def _count(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and parameter.data_ptr() not in self._seen:
            self._seen.add(parameter.data_ptr())
            self._taken += parameter.nbytes

    def _check(self, size: float) -> None:
        if self._taken + size > self._most:
            raise _refused(f"weights of {_shown(self._taken + size)}", self._most, self._nodes)


def _size(make: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> float:
    """Bytes of the tensor that a function would make; infinite if they can't be counted."""
    kwargs = {name: value for name, value in kwargs.items() if name not in ("generator", "out", "pin_memory")}
    try:
        return make(*args, **kwargs | {"device": "meta"}).nbytes
    except (RuntimeError, TypeError, OverflowError, ValueError) as error:
        return math.inf if "overflow" in str(error).lower() else 0  # an error of its own, which it raises itself


def check_memory(experiment: Experiment, built: Built, stages: Sequence[Stage], device: torch.device) -> None:
    """Check what training takes at least: weights, gradients, the optimisers' state, and outputs of a batch.

    Args:
        experiment, built: what is trained.
        stages: its stages; none if they are not known yet.
        device: where.

    Raises:
        ConfigError: the device has less.
    """
    model, task, config = built.model, built.task, built.trainer.config
    nodes = [node for node in (experiment.inference_net, experiment.energy, experiment.energy_loss) if node is not None]
    tensors = [*model.parameters(), *model.buffers()]
    weights = sum(tensor.nbytes for tensor in tensors)
    there = available(device) + sum(tensor.nbytes for tensor in tensors if tensor.device.type == device.type)
    gradients, states = 0, 0
    for stage in stages:
        owned = {name: sum(p.nbytes for p in some.values()) for name, some in assign(model, stage).items()}
        gradients = max([gradients, *owned.values()])
        states = max(states, sum(_moments(phase.player) * owned[phase.name] for phase in stage.phases))
    batch = min(-(-config.batch_size // config.accumulate), len(task.part("train")))
    outputs = batch * _outputs(nodes) * _variables(nodes, task) * _FLOAT
    parts = {"weights": weights, "gradients": gradients, "optimisers": states, "outputs of a batch": outputs}
    if sum(parts.values()) > there:
        said = ", ".join(f"{name} {_shown(size)}" for name, size in parts.items() if size)
        raise _refused(said, there, nodes)


def out_of_memory(error: BaseException) -> bool:
    """True of an error of Python's or torch's allocator."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


@contextmanager
def memory_of_training(smaller: str) -> Iterator[None]:
    """An allocator's error inside is a `RunError` that says what to make smaller."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise RunError(f"memory ran out in training ({str(error).splitlines()[0]}); {smaller}") from error


def _moments(player: Player) -> int:
    """Tensors of a parameter's size that an optimiser keeps, and its running mean."""
    moments = (1 if player.momentum else 0) if player.type == "sgd" else 2
    return moments + (player.average is not None)


def _outputs(nodes: Sequence[Node]) -> int:
    """Most outputs of an example that are held at once."""
    named = [value for node in nodes for key, value in _numbers(node) if key.rpartition(".")[2] in OUTPUTS]
    return max([1, *named])


def _variables(nodes: Sequence[Node], task: Task) -> int:
    """Least numbers of an output; samples may be short lists of labels in place of one for each label."""
    sparse = any(getattr(node.config, "sampling", "dense") != "dense" for node in nodes)
    return 1 if sparse else math.prod(size or 1 for size in task.space.shape)


def _refused(parts: str, most: int, nodes: Sequence[Node]) -> ConfigError:
    numbers = sorted({pair for node in nodes for pair in _numbers(node)}, key=lambda pair: -pair[1])[:2]
    largest = " and ".join(f"{key}={value}" for key, value in numbers)
    return ConfigError(
        f"found a config that needs at least {parts} of memory; expected at most {_shown(most)}, which are left. "
        f"Its largest numbers are {largest}"
    )


def _numbers(node: Node) -> Iterator[tuple[str, int]]:
    """Whole numbers of a component's table and of its parts' tables, by dotted key."""
    yield from _whole(node.config.model_dump(mode="json"), node.where)
    if node.features is not None:
        yield from _numbers(node.features)
    for part in node.parts.values():
        for inner in [part] if isinstance(part, Node) else part.values():
            yield from _numbers(inner)


def _whole(value: Any, key: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield key, value
    elif isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _whole(inner, f"{key}.{name}")


def _shown(size: float) -> str:
    if not math.isfinite(size):
        return "more bytes than can be counted"
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"
