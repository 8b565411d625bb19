"""The hooks a plugin may implement. Each takes no argument and returns a table of names.

A value in a table is a class, or the string `"module:Class"`, imported when a config names it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pluggy

hookspec = pluggy.HookspecMarker("spen_plugins")

Table = Mapping[str, type | str]


@hookspec
def spen_energy() -> Table:
    """Energies: subclasses of `spen_plugins.Energy`, config key `energy`."""


@hookspec
def spen_inference_net() -> Table:
    """Inference nets: subclasses of `spen_plugins.InferenceNet`, config key `inference_net`."""


@hookspec
def spen_energy_loss() -> Table:
    """Energy losses: subclasses of `spen_plugins.EnergyLoss`, config key `energy_loss`."""


@hookspec
def spen_cost_net() -> Table:
    """Cost-augmented nets: subclasses of `spen_plugins.CostNet`, key `cost_net` of an energy loss that takes one."""


@hookspec
def spen_trainer() -> Table:
    """Trainers: subclasses of `spen_plugins.Trainer`, config key `trainer`."""


@hookspec
def spen_task() -> Table:
    """Tasks: subclasses of `spen_plugins.Task`, config key `task`."""


@hookspec
def spen_feature_network() -> Table:
    """Feature networks: subclasses of `spen_plugins.FeatureNetwork`, config key `features`."""
