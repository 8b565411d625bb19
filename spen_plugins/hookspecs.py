"""The hooks of plugins. Each takes no argument and returns a table of names.

A value in a table is a class or a function, or a string `"module:name"`, which is imported when a config or a command
uses it. `spen --help` imports the module of a plugin's entry point, so that module should only hold hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pluggy

hookspec = pluggy.HookspecMarker("spen_plugins")

Classes = Mapping[str, type | str]
"""Name -> class or `"module:Class"`."""
Functions = Mapping[str, Callable[..., Any] | str]
"""Name -> function or `"module:function"`."""


@hookspec
def spen_energy() -> Classes:
    """Energies: subclasses of `spen_plugins.Energy`, config key `energy`."""


@hookspec
def spen_inference_net() -> Classes:
    """Inference nets: subclasses of `spen_plugins.InferenceNet`, config key `inference_net`."""


@hookspec
def spen_energy_loss() -> Classes:
    """Energy losses: subclasses of `spen_plugins.EnergyLoss`, config key `energy_loss`."""


@hookspec
def spen_cost_net() -> Classes:
    """Cost-augmented nets: subclasses of `spen_plugins.CostNet`, key `cost_net` of an energy loss that takes one."""


@hookspec
def spen_trainer() -> Classes:
    """Trainers: subclasses of `spen_plugins.Trainer`, config key `trainer`."""


@hookspec
def spen_task() -> Classes:
    """Tasks: subclasses of `spen_plugins.Task`, config key `task`."""


@hookspec
def spen_feature_network() -> Classes:
    """Feature networks: subclasses of `spen_plugins.FeatureNetwork`, config key `features`."""


@hookspec
def spen_rules() -> Functions:
    """Readers of rules that a user writes (`task.rules`): functions from a `Path` to `spen_plugins.Rules`.

    The name is the suffix of the files that it reads, `py`.
    """


@hookspec
def spen_command() -> Functions:
    """Commands: functions that Typer turns into a command, `spen NAME`; a `_` in the name is typed as `-`.

    A function has Typer's annotated arguments and options. The first line of its docstring is shown in
    `spen --help`, which reads it from the source and does not import the module. A `SpenError` that it raises is shown
    as one message. Names of the core's commands are rejected.
    """


@hookspec
def spen_figure() -> Functions:
    """Figures of finished runs: functions that Typer turns into a command, `spen plot NAME`, as `spen_command`.

    `spen_plugins.figures` has the plotting kit, the usual arguments and `save_figure`, which writes the files. Names of
    the core's figures are rejected.
    """


@hookspec
def spen_model() -> Functions:
    """Models of spaCy components: functions without arguments that return the folder of a saved component.

    A model under a factory's name (`spen_ner`) is the default of its components. A component uses a model of any other
    name if its setting `model` names it.
    """
