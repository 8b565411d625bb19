"""PropBank's lexicon of the senses of predicates, and a task that predicts them."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl
from spen_propbank.lexicon import Roleset, Rolesets, rolesets

__all__ = ["Roleset", "Rolesets", "rolesets"]


@hookimpl
def spen_task() -> Classes:
    return {"senses": "spen_propbank.senses:Senses"}
