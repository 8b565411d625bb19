"""Helpers for energies, nets and encoders: what plugins may use besides the names of `spen_plugins` itself.

Names are imported at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_WHERE = {
    "LazyScores": "nn.local",
    "MANY_LABELS": "nn.local",
    "lazy_scores": "nn.local",
    "local_layer": "nn.local",
    "local_part": "nn.local",
    "local_scores": "nn.local",
    "need_tags": "nn.local",
    "Lstm": "nn.recurrent",
    "reversal": "nn.recurrent",
    "full": "spaces.base",
    "inner": "spaces.base",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'spen_plugins.nn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"spen_plugins.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from spen_plugins.nn.local import (
        MANY_LABELS,
        LazyScores,
        lazy_scores,
        local_layer,
        local_part,
        local_scores,
        need_tags,
    )
    from spen_plugins.nn.recurrent import Lstm, reversal
    from spen_plugins.spaces.base import full, inner
