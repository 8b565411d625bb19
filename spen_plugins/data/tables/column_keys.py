"""Keys that say which columns of a user's table are what: one vocabulary for configs and commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from shlex import quote
from typing import Any

from spen_plugins.data.tables.label_names import split_names
from spen_plugins.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class ColumnKeys:
    """Columns of a file, as configs and commands name them.

    Args:
        text: the texts' column, by name or number from 1.
        labels: a column of labels, by name or number from 1; several names, or `tag_*`, of columns of 0 and 1; or a
            file of names.
        label_count: how many of the last columns are labels, of vectors.
        separator: separates the labels in one cell.
        drop: columns that are not used.
        words, tags: the columns of tagged words, by number from 0 or name.
        scheme: of tags that are spans, which says which tags are meant where a file has parts of speech, too.
    """

    text: int | str | None = None
    labels: int | str | Sequence[str] | None = None
    label_count: int | None = None
    separator: str | None = None
    drop: Sequence[str] = ()
    words: int | str | None = None
    tags: int | str | None = None
    scheme: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> ColumnKeys:
        """From values by key, as a command line or Python has them."""
        for key in settings:
            if key not in KEYS:
                raise ConfigError(f"unknown key {key!r}.{did_you_mean(key, KEYS)} Keys: {', '.join(KEYS)}")
        values = {key: split_names(value) if key in ("labels", "drop") else value for key, value in settings.items()}
        if (drop := values.get("drop")) is not None:
            values["drop"] = list(map(str, drop)) if isinstance(drop, (list, tuple)) else [str(drop)]
        if values.get("labels") is not None and values.get("label_count") is not None:
            raise ConfigError("labels= and label_count=: found both; expected one of the two")
        return cls(**{key: value for key, value in values.items() if value is not None})

    @classmethod
    def of_config(cls, config: Any) -> ColumnKeys:
        """The keys that a task's config gives."""
        known = [key for key in KEYS if key != "words" or hasattr(config, "tags")]  # `words` of texts is no column
        values = {key: getattr(config, key, None) for key in known}
        values["drop"] = getattr(config, "unused", None)
        if values["scheme"] == "none" or getattr(config, "format", None) == "predicates":
            values["scheme"] = None
        return cls.of(values)

    def given(self) -> dict[str, Any]:
        """The keys with values."""
        values = {key: getattr(self, key) for key in KEYS}
        return {key: value for key, value in values.items() if value not in (None, (), [])}

    def spelled(self) -> str:
        """The keys as words of a command line."""
        settings = self.given().items()
        texts = {key: ",".join(value) if isinstance(value, (list, tuple)) else str(value) for key, value in settings}
        return " ".join(quote(f"{key}={text}") for key, text in texts.items())


KEYS = tuple(field.name for field in fields(ColumnKeys))
