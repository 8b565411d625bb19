"""Base class of energies, energy losses, inference nets and cost nets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.features import FeatureNetwork
from spen_plugins.settings.config import Config
from spen_plugins.task import Task


class Component(nn.Module):
    """A module built from its config, the task's facts and, if it needs one, its own feature network.

    Args:
        config: an instance of the class's `Config`.
        task: after `load` or `restore`; sizes come from here.
        features: a fresh feature network if `uses_features`, else None.
    """

    Config: ClassVar[type[Config]] = Config
    uses_features: ClassVar[bool] = False
    """If true, each instance gets its own feature network, built from the config's `features`."""
    parts: ClassVar[Mapping[str, str]] = {}
    """Keys of its table that hold tables of other components, and their kinds: `{"net": "inference_net"}`; with a star,
    `{"terms": "energy*"}`, a table of such tables under names of the user's choice. The builder makes the components
    in a config and passes them to the constructor by key, starred ones as a dict."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__()
        self.config = config
        self.space = task.space
        self.features = features

    def __setattr__(self, name: str, value: Any) -> None:
        # PyTorch keeps modules and parameters elsewhere, where the class's attribute would hide them.
        if isinstance(value, nn.Module | nn.Parameter) and hasattr(type(self), name):
            raise PluginError(
                f"{type(self).__name__}.{name}: found a {type(value).__name__} under the name of an attribute of the "
                "class; expected another name"
            )
        super().__setattr__(name, value)

    def checksums(self) -> dict[str, str]:
        """sha256 of each file read, by path; a run can be resumed only if they are unchanged."""
        return {}


NamedParts = Mapping[str, Component]
"""Components by the names that a user chose for them, under a starred key of `Component.parts`."""


def name_parts(parts: NamedParts, key_path: str) -> nn.ModuleDict:
    """The components as modules.

    Args:
        key_path: the key's path in the config, for messages.

    Raises:
        ConfigError: PyTorch can't take a name.
    """
    for name in parts:
        if "." in name or not name or hasattr(nn.ModuleDict(), name):
            raise ConfigError(f"{key_path}: {name!r} is not a valid module name in PyTorch; choose another")
    return nn.ModuleDict(parts)
