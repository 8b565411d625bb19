"""Contract checks for plugin authors: call one on a new component in a test; its AssertionError names the failure.

The toy tasks need no files. A component that needs features gets `ToyFeatures(task)` or any real feature network.
The checks use more outputs than examples on purpose, as equal numbers can hide shape bugs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins.lazy import lazy_names

__getattr__, __all__ = lazy_names(globals())

if TYPE_CHECKING:
    from spen_plugins.testing.comparing import check_config
    from spen_plugins.testing.components import (
        check_cost_net,
        check_energy,
        check_feature_network,
        check_inference_net,
    )
    from spen_plugins.testing.losses import check_energy_loss
    from spen_plugins.testing.spaces import check_space
    from spen_plugins.testing.task_contract import check_task
    from spen_plugins.testing.tasks import ToyFeatures, ToyImages, ToyLabels, ToyMasks, ToyTags
    from spen_plugins.testing.training import check_trainer
