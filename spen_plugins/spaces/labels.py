"""Multi-label outputs: the box [0, 1]^L."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.spaces.base import OutputSpace, full, inner


class LabelSet(OutputSpace):
    """Any subset of L labels; `y` is `(batch, sample, label)` in [0, 1]. There is no padding, so masks are None.

    Args:
        labels: the labels' names, in the order of the last axis.
    """

    variables = 1

    def __init__(self, labels: list[str]) -> None:
        self.labels = list(labels)

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (len(self.labels),)

    def relax(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        return torch.sigmoid(logits)

    def logits(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return torch.logit(y, eps=1e-4)

    def sample(self, logits: Tensor, n: int, mask: Tensor | None = None) -> Tensor:
        p = torch.sigmoid(logits.detach())
        noise = torch.rand(p.shape[0], n, p.shape[-1], device=p.device, dtype=p.dtype)
        return (noise < p).to(p.dtype)

    def rsample(self, logits: Tensor, n: int, mask: Tensor | None = None, temperature: float = 1.0) -> Tensor:
        u = torch.rand(logits.shape[0], n, logits.shape[-1], device=logits.device, dtype=logits.dtype)
        return torch.sigmoid((logits + torch.logit(u, eps=1e-7)) / temperature)

    def perturb(self, logits: Tensor, n: int, std: float, mask: Tensor | None = None) -> Tensor:
        noise = torch.randn(logits.shape[0], n, logits.shape[-1], device=logits.device, dtype=logits.dtype)
        return torch.sigmoid(logits + std * noise)

    def log_prob(self, logits: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
        # sum_l y_l·logit_l − softplus(logit_l) is −BCE; the second sum doesn't depend on y.
        logits = full(logits)
        linear = inner(logits[:, 0], y) if logits.shape[1] == 1 else (y * logits).sum(-1)
        return linear - F.softplus(logits).sum(-1)

    def round(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return (y > 0.5).to(y.dtype)

    def best(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        return (logits > 0).to(logits.dtype)

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None = None) -> Tensor:
        return (y - gold).abs().sum(-1)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None = None) -> Tensor:
        """Soft F1 of Gygli et al. 2017: 2I / (I + U), I = Σ min(y, gold), U = Σ max(y, gold)."""
        intersection, union = torch.minimum(y, gold).sum(-1), torch.maximum(y, gold).sum(-1)
        return torch.where(
            union > 0, 2 * intersection / (intersection + union).clamp(min=1e-12), torch.ones_like(union)
        )

    def size(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return y.new_full((y.shape[0], 1), float(y.shape[-1]))

    def project(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return y.clamp(0.0, 1.0)
