"""Images of several sizes in one batch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def padding_mask(shapes: np.ndarray) -> Tensor | None:
    """True where an image is, `(batch, row, column)`, of the images' rows and columns; None if all are of one size."""
    if (shapes == shapes[0]).all():
        return None
    inside = [np.arange(lengths.max()) < lengths[:, None] for lengths in shapes.T]
    return torch.from_numpy(inside[0][:, :, None] & inside[1][:, None, :])
