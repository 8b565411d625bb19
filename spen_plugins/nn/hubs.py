"""Facts of the training part on which structures over label sets are built: its label sets, and hubs."""

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
    labels in the training part. Without a training part, as in a restored task, the first labels."""
    total, counts, pairs = 0, torch.zeros(labels, dtype=torch.double), torch.zeros(labels, labels, dtype=torch.double)
    for gold in training_labels(task):
        y = gold.double().cpu()
        total, counts, pairs = total + len(y), counts + y.sum(0), pairs + y.t() @ y
    information = mutual_information(pairs, counts, max(total, 1))
    coverage, is_hub = torch.zeros(labels, dtype=torch.double), torch.zeros(labels, dtype=torch.bool)
    hubs: list[int] = []
    for _ in range(min(count, labels)):
        gain = (torch.maximum(information, coverage) - coverage).sum(1).masked_fill(is_hub, -torch.inf)
        hubs.append(int(gain.argmax()))
        is_hub[hubs[-1]] = True
        coverage = torch.maximum(coverage, information[hubs[-1]])
    return torch.tensor(hubs)


def mutual_information(both: Tensor, on: Tensor, total: int) -> Tensor:
    """I(y_i; y_j) in nats, 0 for a label with itself, from the counts of pairs and labels among `total` examples:
    `(label, label)`."""
    first_counts = on.unsqueeze(1)
    joint = torch.stack([both, first_counts - both, on - both, total - first_counts - on + both]).clamp(min=0) / total
    p, q = first_counts / total, on / total
    product = torch.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    information = torch.where(joint > 0, joint * (joint / product.clamp(min=1e-300)).log(), 0.0).sum(0)
    return information.fill_diagonal_(0)
