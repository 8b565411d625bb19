"""The precision in which a model predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import torch

from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.model import Model
from spen_plugins.nn import Lstm
from spen_plugins.nn.int8 import has_bfloat16, has_int8, multiply_in_int8

Precision = Literal["no", "bf16", "int8"]


def set_precision(model: Model, precision: Precision, run: Path) -> None:
    """Make a model, which is on its device, multiply in another precision; see `Predictor`.

    Raises:
        ConfigError: there is no such precision, or the model or this machine can't multiply in int8.
    """
    if precision not in get_args(Precision):
        raise ConfigError(f"found precision={precision!r}; expected 'no' (float32), 'bf16' or 'int8'")
    model.predicts_in = torch.bfloat16 if precision == "bf16" else None
    if precision != "int8":
        return
    networks = [part for part in model.inference_net.modules() if isinstance(part, FeatureNetwork)]
    encoders = [encoder for network in networks if (encoder := network.shared_part()) is not None]
    if not has_int8() or any(weight.device.type != "cpu" for encoder in encoders for weight in encoder.parameters()):
        raise ConfigError("precision='int8' requires an x86 processor, device='cpu' and a torch with oneDNN")
    if not sum(map(multiply_in_int8, encoders)):
        raise ConfigError(
            f"precision='int8' speeds up pretrained encoders, and the net of {run} has none: leave precision out, "
            "or use 'bf16'"
        )
    for part in model.inference_net.modules():
        if isinstance(part, Lstm) and has_bfloat16():
            part.multiplies_in = torch.bfloat16
