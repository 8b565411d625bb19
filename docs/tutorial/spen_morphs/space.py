"""The output space: for each letter, whether a morph ends behind it."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

import spen_plugins as sp


class Cuts(sp.OutputSpace):
    """0 or 1 at each letter, relaxed to [0, 1]; `y` is `(batch, sample, letter)`."""

    @property
    def shape(self):
        return (None,)  # as many letters as the batch's longest word has

    def relax(self, logits, mask):
        return masked(torch.sigmoid(logits), mask)

    def logits(self, y, mask):
        return masked(torch.logit(y, eps=1e-4), mask)

    def project(self, y, mask):
        return masked(y.clamp(0, 1), mask)

    def round(self, y, mask):
        return masked((y > 0.5).to(y.dtype), mask)

    def cost(self, y, gold, mask):
        return masked((y - gold).abs(), mask).sum(-1)

    def score(self, y, gold, mask):
        return 1 - self.cost(y, gold, mask) / self.size(y, mask)

    def size(self, y, mask):
        return y.new_full((len(y), 1), y.shape[-1]) if mask is None else mask.sum(-1, keepdim=True)

    def independent(self, logits, mask=None, **kept):
        return Coins(self, logits, mask, **kept)


@dataclass(frozen=True)
class Coins(sp.Proposal):
    """A morph ends behind letter t with probability sigmoid(logit_t), whatever the other letters do."""

    @property
    def mode(self):
        return self.space.round(self.mean.detach(), self.mask)

    def sample(self, n):
        return torch.bernoulli(self.mean.detach().expand(-1, n, -1))

    def rsample(self, n, temperature=1.0):
        logits = self.logits.expand(-1, n, -1)
        y = torch.distributions.RelaxedBernoulli(logits.new_tensor(temperature), logits=logits).rsample()
        return masked(y, self.mask)

    def log_prob(self, y):
        return masked(self.logits * y - F.softplus(self.logits), self.mask).sum(-1)


def masked(y, mask):
    """`y` `(batch, sample, letter)` with zeros on padding; a mask is `(batch, letter)`."""
    return y if mask is None else y * mask.unsqueeze(1)
