"""Facts of the training part that structures over label sets start from: its label sets, and hubs."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from spen_plugins.task import Task, read_gold

AT_ONCE = 1024


def training_labels(task: Task) -> Iterator[Tensor]:
    """Gold of the training examples that have it, boolean `(example, label)` each; none of a restored task."""
    return (gold[:, 0] > 0.5 for gold in read_gold(task, AT_ONCE))


def find_hubs(task: Task, labels: int, count: int) -> Tensor:
    """The hubs, `(hub,)`: one after the other, each adds most to Σ_i max_h I(y_h; y_i), the mutual information of
    labels in the training part. The first labels without a training part, as of a restored task."""
    total, on, both = 0, torch.zeros(labels, dtype=torch.double), torch.zeros(labels, labels, dtype=torch.double)
    for gold in training_labels(task):
        y = gold.double().cpu()
        total, on, both = total + len(y), on + y.sum(0), both + y.t() @ y
    information = mutual_information(both, on, max(total, 1))
    covered, hubs = torch.zeros(labels, dtype=torch.double), torch.zeros(labels, dtype=torch.bool)
    chosen: list[int] = []
    for _ in range(min(count, labels)):
        gain = (torch.maximum(information, covered) - covered).sum(1).masked_fill(hubs, -torch.inf)
        chosen.append(int(gain.argmax()))
        hubs[chosen[-1]] = True
        covered = torch.maximum(covered, information[chosen[-1]])
    return torch.tensor(chosen)


def mutual_information(both: Tensor, on: Tensor, total: int) -> Tensor:
    """I(y_i; y_j) in nats, 0 of a label with itself, from the counts of pairs and labels among `total` examples:
    `(label, label)`."""
    of_first = on.unsqueeze(1)
    joint = torch.stack([both, of_first - both, on - both, total - of_first - on + both]).clamp(min=0) / total
    p, q = of_first / total, on / total
    apart = torch.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    information = torch.where(joint > 0, joint * (joint / apart.clamp(min=1e-300)).log(), 0.0).sum(0)
    return information.fill_diagonal_(0)
