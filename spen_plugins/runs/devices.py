"""Devices, as torch names them."""

from __future__ import annotations

import torch

from spen_plugins.errors import ConfigError


def check_device(device: str) -> None:
    """Whether torch can compute on a device.

    Raises:
        ConfigError: it can't.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {device}: {str(error).splitlines()[0]}") from error
