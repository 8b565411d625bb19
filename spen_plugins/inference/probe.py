"""Settings of the probe: what gradient-based inference makes of an energy while that trains."""

from __future__ import annotations

from pydantic import Field

from spen_plugins.inference.descent import Descent


class ProbeConfig(Descent):
    """Validation scores of gradient-based inference from the net's output and from random starts."""

    every: int = Field(1, ge=1)
    """At every n-th epoch."""
    random: int = Field(3, ge=1)
    """Random starts of an example."""
