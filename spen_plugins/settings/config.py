"""The base of every typed config: frozen, strict, unknown keys forbidden."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Settings of one component in a config.

    Strict: `"3"` is not a number and `1` is not a boolean; an integer is accepted for a float, because
    jsonnet writes `1.0` as `1`. NaN and infinity are rejected. Defaults are checked likewise. Facts known only at run
    time (number of labels, vocabulary) are not settings.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        protected_namespaces=(),
    )
