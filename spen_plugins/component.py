"""What the four nouns share: a module made of a typed config and a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from spen_plugins.config.config import Config
from spen_plugins.features import FeatureNetwork
from spen_plugins.task import Task


class Component(nn.Module):
    """A module built from its config, the task's facts and, where it wants one, a feature network of its own.

    Args:
        config: an instance of the class's `Config`.
        task: after `load` or `restore`; sizes come from here.
        features: a fresh feature network if `uses_features`, else None.
    """

    Config: ClassVar[type[Config]] = Config
    uses_features: ClassVar[bool] = False
    """Whether the builder makes a feature network (from the config's `features`) for each instance."""
    parts: ClassVar[Mapping[str, str]] = {}
    """Keys of its table that hold tables of other components, and their kinds: `{"net": "inference_net"}`; with a star,
    `{"terms": "energy*"}`, a table of such tables by names of the user's own. The builder makes what a config gives and
    passes them to the constructor by key, the starred ones as a dict."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__()
        self.config = config
        self.space = task.space
        self.features = features
