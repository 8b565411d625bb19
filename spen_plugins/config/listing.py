"""The keys of an evaluated config, with type, value and documentation."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from spen_plugins.config.experiment import NODES, Experiment, ExperimentConfig
from spen_plugins.config.node import Node
from spen_plugins.settings.fields import Field, fields


def keys(experiment: Experiment) -> Iterator[Field]:
    """Every dotted key of a checked config, in the config's order; a field's `default` is the value there.

    A key with a table is replaced by the keys of that table; one that is null is listed itself.
    """
    for field in fields(ExperimentConfig):
        value = getattr(experiment, field.name)
        if field.name not in NODES:
            yield from _leaves(field, value)
        elif value is None:
            yield replace(field, type="table", default="null")
        else:
            yield from _node_fields(value)


def _node_fields(node: Node) -> Iterator[Field]:
    yield Field(f"{node.where}.type", f"{node.kind} type", json.dumps(node.type), _first_line(node.cls))
    yield from _model_fields(node.config, f"{node.where}.")
    if node.own_features is not None:
        yield from _node_fields(node.own_features)
    for part in node.parts.values():
        for inner in [part] if isinstance(part, Node) else part.values():
            yield from _node_fields(inner)


def _model_fields(model: BaseModel, prefix: str) -> Iterator[Field]:
    for field in fields(type(model), prefix):
        yield from _leaves(field, getattr(model, field.name.removeprefix(prefix)))


def _leaves(field: Field, value: Any) -> Iterator[Field]:
    if isinstance(value, BaseModel):
        yield from _model_fields(value, f"{field.name}.")
    else:
        yield replace(field, default=json.dumps(value, default=_plain, ensure_ascii=False))


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]
