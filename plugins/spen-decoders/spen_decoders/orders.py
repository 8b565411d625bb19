"""The order in which labels are written: the frequent ones of the training part first."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_plugins import Task
from spen_plugins.nn import training_labels


def order_by_frequency(task: Task) -> Tensor:
    """Labels from the most to the least frequent in the training part, `(label,)`; equal ones keep their order.

    Without a training part, as in a restored task, all labels keep their order.
    """
    counts = torch.zeros(len(task.space.labels), dtype=torch.double)
    for gold in training_labels(task):
        counts += gold.double().sum(0).cpu()
    return counts.argsort(descending=True, stable=True)
