"""Contract checks for plugin authors: call one on a new component in a test; its AssertionError names the failure.

    from spen_plugins.testing import ToyLabels, check_energy

    def test_quadratic():
        task = ToyLabels()
        check_energy(Quadratic(Quadratic.Config(), task), task)

The toy tasks need no files. A component that needs features gets `ToyFeatures(task)` or any real feature network.
The checks use more outputs than examples on purpose, as equal numbers can hide shape bugs.
"""

from spen_plugins.testing.components import (
    check_cost_net,
    check_energy,
    check_feature_network,
    check_inference_net,
)
from spen_plugins.testing.configs import check_config
from spen_plugins.testing.energy_losses import check_energy_loss
from spen_plugins.testing.spaces import check_space
from spen_plugins.testing.tasks import ToyFeatures, ToyImages, ToyLabels, ToyMasks, ToyTags
from spen_plugins.testing.training import check_task, check_trainer

__all__ = [
    "ToyFeatures",
    "ToyImages",
    "ToyLabels",
    "ToyMasks",
    "ToyTags",
    "check_config",
    "check_cost_net",
    "check_energy",
    "check_energy_loss",
    "check_feature_network",
    "check_inference_net",
    "check_space",
    "check_task",
    "check_trainer",
]
