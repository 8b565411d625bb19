"""Helpers for energies, losses, nets and encoders: public names for plugins, besides those of `spen_plugins`.

Names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins.lazy import lazy_names

__getattr__, __all__ = lazy_names(globals())

if TYPE_CHECKING:
    from spen_plugins.inference.descent import Descent, gradient_at, minimise
    from spen_plugins.inference.steppers import Gradient
    from spen_plugins.nn.hubs import find_hubs, mutual_information, training_labels
    from spen_plugins.nn.local import (
        MANY_LABELS,
        LazyScores,
        lazy_scores,
        local_layer,
        local_scores,
        local_sum,
        output_size,
        require_label_sets,
        require_tags,
    )
    from spen_plugins.nn.losses import (
        CompoundObjective,
        MarginCost,
        ValueLoss,
        effective_samples,
        entropy,
        estimate_likelihoods,
        log_weights,
        margin_cost,
        to_minimise,
    )
    from spen_plugins.nn.recurrent import Lstm, read_both_ways, reverse_places
    from spen_plugins.spaces.base import at_least_float32, draw_index, inner_product, mask_padding, take_vectors
    from spen_plugins.spaces.chain import Chain, backward_scores, forward_scores, make_step
    from spen_plugins.spaces.forest import Forest
    from spen_plugins.spaces.k_best import chain_k_best
    from spen_plugins.spaces.star import Star, StarLabels
