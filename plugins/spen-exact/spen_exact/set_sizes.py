"""Sums over the label sets of each size: elementary symmetric polynomials, by a product tree.

The polynomial of a label is off + on · t; the coefficient of t^k in a product of them is the sum over sets of k labels.
Halves of the labels are multiplied pairwise, so that L labels need log₂ L steps. All terms are probabilities, so that
nothing cancels, and terms that underflow are a negligible share of the total 1.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.nn import at_least_float32, draw_index

FIRST = 32
"""Largest size in the first attempt."""
TAIL = 1e-9
"""Largest probability of the sizes that are left out."""


class SizeTree:
    """The products Π (off + on · t) over ever larger groups of labels, up to all of them.

    Coefficients are kept for sizes from 0 to `top`; the last one is the sum of those of all sizes from `top` on.

    Args:
        on, off: non-negative terms, such as P(y_i = 1) and P(y_i = 0), `(batch, label)`.
        top: the last coefficient, at least 1 and at most one more than the number of labels.
    """

    def __init__(self, on: Tensor, off: Tensor, top: int) -> None:
        self.labels, self.top = on.shape[1], top
        nodes = torch.stack([off, on]).transpose(1, 2)  # (size, node, batch): the inner loops are over examples
        self.levels = [_pad(nodes)]
        with torch.autocast(on.device.type, enabled=False):
            while self.levels[-1].shape[1] > 1:
                half = self.levels[-1].shape[1] // 2
                nodes = _multiply(self.levels[-1][:, :half], self.levels[-1][:, half:], top)
                self.levels.append(_pad(nodes) if half > 1 else nodes)

    @property
    def law(self) -> Tensor:
        """The sum over sets of each size, `(batch, top + 1)`; for probabilities, the Poisson-binomial law of |y|."""
        root = self.levels[-1][:, 0].t()
        return F.pad(root, (0, self.top + 1 - root.shape[1]))

    def marginals(self, weights: Tensor) -> Tensor:
        """P(y_i = 1) if a set of size k weighs `weights` `(batch, top + 1)` times its terms, `(batch, label)`.

        Computed by messages from the root to the labels; differentiable.
        """
        messages = weights.t().unsqueeze(1)[: self.levels[-1].shape[0]]
        for nodes in reversed(self.levels[:-1]):
            degree, half = nodes.shape[0], nodes.shape[1] // 2
            left, right = nodes[:, :half], nodes[:, half:]
            table = _make_table(degree, self.top, messages.dtype, messages.device)
            with torch.autocast(messages.device.type, enabled=False):
                pairs = (table.t() @ messages[:, :half].flatten(1)).view(degree, degree, half, -1)
            messages = torch.cat([(pairs * right).sum(1), (pairs * left.unsqueeze(1)).sum(0)], 1)
        off, on = (messages * self.levels[0])[:, : self.labels].unbind()
        return (on / (on + off).clamp(min=torch.finfo(on.dtype).tiny)).t()

    def sample(self, sizes: Tensor) -> Tensor:
        """Label sets of these sizes `(batch, sample)`, `top` for `top` or more, drawn in proportion to their terms:
        the conditional Bernoulli law, `(batch, sample, label)` boolean, no gradient."""
        with torch.no_grad():
            node_sizes = sizes.unsqueeze(-1)  # (batch, sample, node)
            for nodes in reversed(self.levels[:-1]):
                half = nodes.shape[1] // 2
                node_sizes = self._split(node_sizes[..., :half], nodes[:, :half], nodes[:, half:])
            return node_sizes[..., : self.labels] > 0

    def _split(self, sizes: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """Sizes `(batch, sample, 2 · node)` of the halves of nodes with these sizes `(batch, sample, node)`."""
        left, right = (part.permute(2, 1, 0) for part in (left, right))  # (batch, node, size)
        degree = left.shape[-1]
        left_sizes = torch.arange(degree, device=sizes.device)
        is_capped = sizes.unsqueeze(-1) == self.top
        right_sizes = sizes.unsqueeze(-1) - left_sizes  # (batch, sample, node, size)
        tails = right.flip(-1).cumsum(-1).flip(-1)
        rows = tuple(
            torch.arange(n, device=sizes.device).view(shape)
            for n, shape in ((sizes.shape[0], (-1, 1, 1, 1)), (sizes.shape[2], (1, 1, -1, 1)))
        )
        indices, is_possible = right_sizes.clamp(0, degree - 1), right_sizes < degree
        weights = (
            torch.where(is_capped, tails[(*rows, indices)], right[(*rows, indices)] * (right_sizes >= 0)) * is_possible
        )
        first = draw_index(left.unsqueeze(1) * weights)
        right_sizes = sizes - first
        right_weights = torch.where(left_sizes >= right_sizes.unsqueeze(-1), right.unsqueeze(1), 0.0)
        second = torch.where(sizes == self.top, draw_index(right_weights), right_sizes)
        return torch.cat([first, second], -1)

    def joint(self) -> Tensor:
        """The sum over sets of each size from 1 to `top` − 1 with a label, `(batch, size, label)`, no gradient."""
        with torch.no_grad():
            batch, sizes = self.levels[0].shape[2], self.top - 1
            other_sums = self.levels[0].new_zeros(sizes, 1, batch)
            other_sums[0] = 1
            for nodes in reversed(self.levels[:-1]):
                half = nodes.shape[1] // 2
                parents = other_sums[:, :half].repeat(1, 2, 1)
                siblings = torch.cat([nodes[:, half:], nodes[:, :half]], 1)
                other_sums = torch.zeros_like(parents)
                for size in range(min(nodes.shape[0], sizes)):
                    other_sums[size:].addcmul_(parents[: sizes - size], siblings[size])
            return (other_sums[:, : self.labels] * self.levels[0][1, : self.labels]).permute(2, 0, 1)


def log_sizes(logits: Tensor, top: int) -> tuple[SizeTree, Tensor]:
    """The tree of independent labels with these logits `(batch, label)`, and ln P(|y|) for sizes 0 to `top` or more."""
    logits = at_least_float32(logits)
    tree = SizeTree(torch.sigmoid(logits), torch.sigmoid(-logits), top)
    return tree, tree.law.clamp(min=torch.finfo(logits.dtype).tiny).log()


def compute_label_sizes(logits: Tensor, counts: Tensor) -> Tensor:
    """P(y_i = 1, |y| = s) of each label i and size s from 1 under p(y) ∝ exp(Σ_i logit_i y_i + c_|y|),
    `(batch, size, label)` float64, without gradient. Larger sizes than the last one have a probability below 1e-9.

    Args:
        logits: `(batch, label)`.
        counts: c of sizes 0, 1, …, `(batch, size)`, the last one shared by all larger sizes.
    """
    logits, counts = _widen(logits), _widen(counts)
    labels, size = logits.shape[1], max(FIRST, counts.shape[1] - 2)
    while True:
        tree, log_law = log_sizes(logits, min(size + 1, labels + 1))
        log_weights = counts[:, torch.arange(tree.top + 1, device=logits.device).clamp(max=counts.shape[1] - 1)]
        log_p = log_law + log_weights
        log_z = torch.logsumexp(log_p, 1, keepdim=True)
        if size >= labels or bool(((log_p[:, -1:] - log_z).exp() <= TAIL).all()):
            return tree.joint() * (log_weights - log_z)[:, 1:-1].clamp(max=700).exp().unsqueeze(2)
        size *= 2


def _widen(values: Tensor) -> Tensor:
    """The values in float64, or in float32 if the device has no other, without gradient."""
    return values.detach().to(torch.float32 if values.device.type == "mps" else torch.float64)


def _pad(nodes: Tensor) -> Tensor:
    """An even number of nodes, `(size, node, batch)`: a node without a partner gets the polynomial 1."""
    if nodes.shape[1] % 2 == 0:
        return nodes
    one = torch.zeros_like(nodes[:, :1])
    one[0] = 1
    return torch.cat([nodes, one], 1)


def _multiply(a: Tensor, b: Tensor, top: int) -> Tensor:
    """Products of polynomials `(size, node, batch)` of equal degree, sizes from `top` on added up."""
    degree = a.shape[0]
    if degree <= 8 or (torch.is_grad_enabled() and (a.requires_grad or b.requires_grad)):
        pairs = (a.unsqueeze(1) * b).flatten(2).flatten(0, 1)
        return (_make_table(degree, top, a.dtype, a.device) @ pairs).view(-1, *a.shape[1:])
    product = a.new_zeros(2 * degree - 1, *a.shape[1:])
    for size in range(degree):
        product[size : size + degree].addcmul_(a, b[size])
    if len(product) <= top + 1:
        return product
    return torch.cat([product[:top], product[top:].sum(0, keepdim=True)])


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # a tensor that a first call makes in inference mode would fail in training
def _make_table(degree: int, top: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """`(size, degree²)`: 1 where a size is the sum of those of two factors, for sizes to `top`, 1 at `top` for more."""
    size = torch.arange(degree)
    total = (size.unsqueeze(1) + size).flatten().clamp(max=top)
    return F.one_hot(total, min(2 * degree - 2, top) + 1).t().to(device, dtype).contiguous()
