"""The cost of a wrong output in a margin loss."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from spen_plugins.spaces import OutputSpace

MarginCost = Literal["mean_l1", "l1", "score"]
"""Choice of Δ in a config; see `margin_cost`."""


def margin_cost(space: OutputSpace, y: Tensor, gold: Tensor, mask: Tensor | None, cost: MarginCost) -> Tensor:
    """Δ(y, gold), `(batch, sample)`.

    Args:
        space: the output space.
        y, gold: `(batch, sample, *variables)`; they broadcast over the samples.
        mask: as `X.mask`.
        cost: "l1", the distance summed over variables (the space's `cost`); "mean_l1", the same divided by the number
            of variables without padding (labels, tokens, pixels); or "score", 1 − the space's soft score.
    """
    if cost == "score":
        return 1 - space.score(y, gold, mask)
    summed = space.cost(y, gold, mask)
    return summed / space.size(y, mask) if cost == "mean_l1" else summed
