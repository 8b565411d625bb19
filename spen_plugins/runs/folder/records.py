"""What a run folder's JSON files hold, as far as it is read: checked where they are read, so that no command has to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, RootModel, ValidationError

from spen_plugins.errors import RunError

Numbers = dict[str, float | None]
Texts = dict[str, str | None]


class Record(BaseModel):
    """A table in which some keys have a known type; others are kept as they are."""

    model_config = ConfigDict(strict=True, extra="allow")


class _Task(Record):
    type: str


class Config(Record):
    """`config.json`, as far as it is read without its plugins; `check` validates the rest."""

    seed: int = 0
    task: _Task


class Environment(Record):
    """`environment.json`; an exported folder has a part of it."""

    source: str | None = None
    working_folder: str | None = None
    device: str | None = None
    git_commit: str | None = None
    packages: Texts = {}
    plugins: Texts = {}
    data_sha256: dict[str, str] = {}
    files_sha256: dict[str, str] = {}
    parameters: dict[str, int] = {}
    training_examples: int | None = None


class _Protocol(Record):
    unit: str = ""


_Scores = dict[str, float | bool | dict[str, Any] | list[Any] | str | None]


class Metrics(Record):
    """`metrics.json`: the scores of each part, and their protocol."""

    protocol: _Protocol = _Protocol()
    __pydantic_extra__: dict[str, _Scores]


class _Errors(Record):
    ece: float
    ece_uncalibrated: float


class Calibration(Record):
    """`calibration.json`."""

    temperature: Annotated[FiniteFloat, Field(gt=0)]
    decisions: str = "decisions"
    validation: _Errors | None = None
    test: _Errors | None = None


class Epoch(Record):
    """A line of `history.jsonl`."""

    stage: str
    epoch: int
    score: float | None = None
    best: bool = False
    validation: _Scores = {}
    updates: dict[str, int] = {}
    losses: Numbers = {}
    gradient_norms: Numbers = {}
    gradient_share: Numbers = {}
    measures: Numbers = {}
    probe: Numbers = {}


EPOCH = {"score": None, "best": False, "validation": {}, "updates": {}, "losses": {}, "gradient_norms": {}}
"""Keys that every line of a history has."""


class Time(Record):
    """A line of `times.jsonl`."""

    stage: str
    epoch: int
    seconds: float


class Plan(Record):
    """`seeds.json`: the evaluated config of each seed, by its number."""

    source: str
    configs: dict[Annotated[str, Field(pattern=r"^\d{1,18}$")], dict[str, Any]]


class Methods(Record):
    """`methods.json`: the methods of a folder in their order; the one chosen, and what it was chosen by."""

    methods: list[Annotated[str, Field(pattern=r"^\w+$")]] = Field(min_length=1)
    chosen: str | None = None
    run: Annotated[str, Field(pattern=r"^\w+/seed-\d+$")] | None = None
    score: str | None = None
    validation: Numbers = {}


class Facts(RootModel[dict[str, Any]]):
    """`vocabulary.json`; its task reads it."""


def checked(kind: type[BaseModel], value: Any, path: Path, line: int | None = None) -> Any:
    """The value, if it is of a kind.

    Args:
        kind: one of the models here.
        value: the JSON value.
        path: its file, for messages.
        line: its line, from 1, if it is one.

    Raises:
        RunError: it is not; with the key, what was found and what was expected.
    """
    try:
        kind.model_validate(value)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False)
        where = ".".join(str(step) for step in first["loc"] if isinstance(value, Mapping))
        at = path if line is None else f"{path}:{line}"
        wanted = first["msg"][0].lower() + first["msg"][1:]
        found = "nothing" if first["type"] == "missing" else f"{first['input']!r:.60}"
        raise RunError(f"{at} is damaged: {where or 'its value'}: found {found}; {wanted}") from None
    return value
