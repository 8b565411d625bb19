"""Description of typed configs' fields, and validation with errors that name the key and the file."""

from __future__ import annotations

import ast
import inspect
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from spen_plugins.errors import ConfigError, did_you_mean

C = TypeVar("C", bound=BaseModel)

_NAMES: dict[Any, str] = {type(None): "null", Any: "any value", bool: "true or false", str: "string"}
_BOUNDS = {"gt": "> {}", "ge": ">= {}", "lt": "< {}", "le": "<= {}", "min_length": "at least {} of them"}


@dataclass(frozen=True)
class Field:
    """One key of a config.

    Attributes:
        name: the key, dotted in a nested table.
        type: its type in words.
        default: as JSON, or None if the key is required.
        doc: its documentation.
    """

    name: str
    type: str
    default: str | None
    doc: str

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + (" (required)" if self.default is None else f" = {self.default}")


def fields(config: type[BaseModel], prefix: str = "", *, nested: bool = False) -> Iterator[Field]:
    """The fields of a typed config; with `nested`, also those of inner tables, by dotted names."""
    docs = _read_docstrings(config)
    for name, info in config.model_fields.items():
        yield Field(prefix + name, _describe_type(info), _format_default(info), info.description or docs.get(name, ""))
        inner = _find_models(info.annotation)
        if nested and len(inner) == 1:
            yield from fields(inner[0], f"{prefix}{name}.", nested=True)


@cache
def _read_docstrings(config: type[BaseModel]) -> dict[str, str]:
    """The docstrings below a typed config's fields, its own and inherited ones.

    pydantic's `use_attribute_docstrings` would read the source of every class when it is defined, which takes a tenth
    of the time to load a small pipeline.
    """
    docs = {}
    for cls in reversed(config.__mro__[: config.__mro__.index(BaseModel)]):
        try:
            source = inspect.getsource(cls)
            tree = ast.parse(f"if True:\n{source}" if source[0].isspace() else source)
        except (OSError, TypeError, SyntaxError):  # typed in at a prompt, or edited since
            continue
        body = next((node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)), [])
        for pair in pairwise(body):
            match pair:
                case ast.AnnAssign(target=field), ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[ast.unparse(field)] = inspect.cleandoc(doc)
    return docs


def validate(
    config: type[C], values: Mapping[str, Any], key_path: str, source: object, further_fields: Sequence[Field] = ()
) -> C:
    """`values` as an instance of `config`.

    Args:
        config: the typed config.
        values: JSON values.
        key_path: their path in the user's config (`energy`), `""` at the top.
        source: their file.
        further_fields: further keys of the table that are handled elsewhere; they are not among `values`.
    """
    try:
        # Through JSON, because strict validation of Python objects rejects lists for tuples.
        return config.model_validate_json(json.dumps(values))
    except ValidationError as error:
        raise ConfigError(
            f"{source}: " + "\n".join(_explain(error, config, values, key_path, further_fields))
        ) from None


def _explain(
    error: ValidationError,
    config: type[BaseModel],
    values: Mapping[str, Any],
    key_path: str,
    further_fields: Sequence[Field],
) -> list[str]:
    """One message per wrong key, in the order of the keys."""
    messages: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        path, model, info, value = _walk_location(detail["loc"], config, values)
        key, inner_path = ".".join((key_path, *path)) if key_path else ".".join(path), ".".join(path[:-1])
        table = ".".join(part for part in (key_path, inner_path) if part)
        if detail["type"] == "extra_forbidden" and model is not None:
            known_fields = [*fields(model), *(further_fields if len(path) == 1 else ())]
            suggestion = did_you_mean(path[-1], [field.name for field in known_fields])
            listing = "; ".join(map(str, known_fields)) if known_fields else "none"
            messages.setdefault(
                key, f"unknown key '{key}'.{suggestion} Known keys of {table or 'a config'}: {listing}."
            )
        elif detail["type"] == "missing":
            expected = f": {_describe_type(info)}" if info is not None else ""
            messages.setdefault(key, f"'{key}' is missing; expected {path[-1]}{expected}.")
        else:
            expected = _describe_type(info) if info is not None else None
            reason = detail["msg"][0].lower() + detail["msg"][1:]
            if expected:  # names of a choice need no reason beside them
                reason = f"expected {expected}" + ("" if detail["type"] == "literal_error" else f" ({reason})")
            messages.setdefault(key, f"'{key or 'config'}': found {shorten_value(value)}; {reason}.")
    return list(messages.values())


def _walk_location(
    location: Sequence[int | str], config: type[BaseModel], values: Any
) -> tuple[list[str], type[BaseModel] | None, FieldInfo | None, Any]:
    """pydantic's location -> its path in the user's config, the model of its table, its field, and the value found.

    A location also holds the tags of union members, which are removed.
    """
    path: list[str] = []
    model: type[BaseModel] | None = config
    info: FieldInfo | None = None
    inner: type[BaseModel] | None = config
    for position, item in enumerate(location):
        is_last = position == len(location) - 1
        is_key = is_last and inner is not None and item in inner.model_fields
        if isinstance(values, dict) and (item in values or is_key):
            values, model = values.get(item), inner
            path.append(str(item))
            info = model.model_fields.get(str(item)) if model is not None else None
            models = _find_models(info.annotation) if info is not None else []
            inner = models[0] if len(models) == 1 else None
        elif isinstance(values, list) and isinstance(item, int) and item < len(values):
            values = values[item]
            path.append(str(item))
            info = None
        elif inner is None and isinstance(item, str) and info is not None:
            inner = next((m for m in _find_models(info.annotation) if m.__name__ == item), None)
    return path, model, info, values


def _find_models(annotation: Any) -> list[type[BaseModel]]:
    """The typed configs in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _find_models(argument)]


def _describe_type(info: FieldInfo) -> str:
    return ", ".join([_describe_annotation(info.annotation), *_list_constraints(info.metadata)])


def _list_constraints(metadata: Sequence[Any]) -> Iterator[str]:
    for item in metadata:
        for name in _BOUNDS:
            if getattr(item, name, None) is not None:
                yield _BOUNDS[name].format(getattr(item, name))


def _describe_annotation(annotation: Any) -> str:
    """Name of a type for users of JSON."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " | ".join(_describe_annotation(a) for a in arguments)
    if origin is Literal:
        return " | ".join(json.dumps(a) for a in arguments)
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"table of {_describe_annotation(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"list of {' | '.join(dict.fromkeys(_describe_annotation(a) for a in arguments if a is not ...))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"table {annotation.__name__}"
    if origin is Annotated:
        bounds = _list_constraints([inner for item in arguments[1:] for inner in getattr(item, "metadata", [item])])
        return " ".join([_describe_annotation(arguments[0]), " and ".join(bounds)]).strip()
    if origin is not None and arguments:
        return _describe_annotation(arguments[0])
    return _NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _format_default(info: FieldInfo) -> str | None:
    if info.is_required():
        return None
    value = info.get_default(call_default_factory=True, validated_data={})
    return json.dumps(value, default=lambda v: v.model_dump(mode="json") if isinstance(v, BaseModel) else str(v))


def shorten_value(value: Any) -> str:
    """A value as JSON for an error message, at most 80 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
