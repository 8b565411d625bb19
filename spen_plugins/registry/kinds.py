"""The kinds of components and functions that plugins register, with their hooks and checks."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

from spen_plugins.errors import PluginError


@dataclass(frozen=True)
class Kind:
    """A kind of component, or of function.

    Attributes:
        hook: the hook that registers it.
        base: its base class, as `(module, class)`, so that listing plugins imports nothing; None for functions.
        config: the base class of its `Config`, in the same form.
        features: true if its table in a config may have its own feature network.
    """

    hook: str
    base: tuple[str, str] | None = None
    config: tuple[str, str] = ("settings.config", "Config")
    features: bool = False

    @property
    def expected(self) -> str:
        """Expected values, for messages about one value of a table."""
        return "a class or 'module:Class'" if self.base else "a function or 'module:function'"

    @staticmethod
    def load(path: tuple[str, str]) -> type:
        """The class of `base` or `config`; imports torch."""
        return getattr(importlib.import_module(f"spen_plugins.{path[0]}"), path[1])

    def check(self, value: Any, label: str) -> None:
        """Check an imported class or function; `label` is its name in messages."""
        if self.base is None:
            if not callable(value) or isinstance(value, type):
                raise PluginError(f"{label} is {value!r}; expected a function")
            return
        from pydantic import PydanticUndefinedAnnotation

        base = self.load(self.base)
        if not (isinstance(value, type) and issubclass(value, base)):
            raise PluginError(f"{label} is {value!r}; expected a subclass of spen_plugins.{base.__name__}")
        missing = sorted(getattr(value, "__abstractmethods__", ()))
        if missing:
            raise PluginError(f"{label}: {value.__name__} does not implement {', '.join(missing)}")
        config = self.load(self.config)
        if not (isinstance(value.Config, type) and issubclass(value.Config, config)):
            raise PluginError(f"{label}: {value.__name__}.Config must be a subclass of spen_plugins.{config.__name__}")
        try:
            value.Config.model_rebuild()
        except PydanticUndefinedAnnotation as error:  # under TYPE_CHECKING alone, or misspelt
            raise PluginError(
                f"{label}: {value.__name__}.Config: the annotation {error.name!r} is not defined when the class is; "
                "expected a type that is imported at run time"
            ) from error
        reserved_names = {"type", *getattr(value, "parts", ()), *(["features"] if self.features else [])}
        if clashes := sorted(reserved_names & value.Config.model_fields.keys()):
            raise PluginError(
                f"{label}: {value.__name__}.Config has a field {clashes[0]!r}, which its table reserves; "
                "expected another name"
            )
        self._check_arguments(value, label)

    def _check_arguments(self, value: type, label: str) -> None:
        """Raise for a class that can't be built as `config.node.make` does."""
        names = ["config", *(["task"] if self.base[0] not in ("task", "trainer") else [])]
        names += ["features"] if self.features else []
        try:
            inspect.signature(value).bind_partial(*names)
        except TypeError as error:
            code = value.__init__.__code__
            method = f"{value.__name__}.__init__ ({code.co_filename}, line {code.co_firstlineno})"
            expected = f"expected the arguments {', '.join([*names, *getattr(value, 'parts', ())])}"
            raise PluginError(f"{label}: {method}: {error}; {expected}") from error


KINDS = {
    "task": Kind("spen_task", ("task", "Task")),
    "features": Kind("spen_feature_network", ("features", "FeatureNetwork")),
    "inference_net": Kind("spen_inference_net", ("inference_net", "InferenceNet"), features=True),
    "energy": Kind("spen_energy", ("energy", "Energy"), features=True),
    "energy_loss": Kind("spen_energy_loss", ("energy_loss", "EnergyLoss"), features=True),
    "cost_net": Kind("spen_cost_net", ("inference_net", "CostNet"), features=True),
    "trainer": Kind("spen_trainer", ("trainer", "Trainer"), ("trainer", "TrainerConfig")),
    "rules": Kind("spen_rules"),
    "command": Kind("spen_command"),
    "figure": Kind("spen_figure"),
    "model": Kind("spen_model"),
}
"""Kinds by name. Kinds of classes are keys of a config; a cost net's table is inside the energy loss
that uses it."""
