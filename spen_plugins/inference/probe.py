"""Settings of the probe: gradient-based inference on an energy while it trains."""

from __future__ import annotations

from pydantic import Field

from spen_plugins.inference.descent import Descent


class ProbeConfig(Descent):
    """Validation scores of gradient-based inference from the net's output and from random starts."""

    every: int = Field(1, ge=1)
    """Epochs between two probes."""
    random: int = Field(3, ge=1)
    """Number of random starts."""
