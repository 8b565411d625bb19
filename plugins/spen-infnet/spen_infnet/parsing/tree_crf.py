"""Inference net `infnet.tree_crf`: biaffine scores of labelled spans, and a CRF over trees (Zhang, Zhou & Li 2020)."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_infnet.parsing.chart import find_ends
from spen_infnet.parsing.span_trees import SpanTrees, TreeCrfProposal
from spen_plugins.nn import at_least_float32


class BiaffineSpans(nn.Module):
    """Vectors of words -> a score for each label of each span (Dozat & Manning 2017), from its first and last word.

    s(i, j, l) = [a_i; 1]ᵀ U_l [b_j; 1], with a and b a linear map and leaky ReLU of the words' vectors.

    Args:
        width: size of a word's vector.
        size: size of a and b.
        labels: number of labels.
        dropout: share of the entries of a and b that are dropped in training.
    """

    def __init__(self, width: int, size: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(width, size), nn.Linear(width, size)
        self.weight = nn.Parameter(torch.randn(labels, size + 1, size + 1) / (size + 1))
        self.dropout = dropout

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores `(batch, place, label)` of words `(batch, token, width)`."""
        a, b = (self._project(layer(vectors)) for layer in (self.first, self.last))
        labels, size, _ = self.weight.shape
        batch, words, _ = a.shape
        products = (a @ self.weight.transpose(0, 1).reshape(size, -1).to(a.dtype)).view(batch, words * labels, size)
        table = (products @ b.transpose(1, 2)).view(batch, words, labels, words)
        first, last = find_ends(words)
        scores = table.transpose(2, 3).flatten(1, 2).index_select(1, (first * words + last).to(a.device))
        return at_least_float32(scores)

    def _project(self, values: Tensor) -> Tensor:
        return F.pad(F.dropout(F.leaky_relu(values, 0.1), self.dropout, self.training), (0, 1), value=1.0)


class TreeCrf(sp.InferenceNet):
    """ln q(y | x) = Σ of the scores of y's labelled spans − ln Z over trees; the features are vectors of words."""

    uses_features = True

    class Config(sp.Config):
        size: int = Field(100, ge=1)
        """Size of the vectors of a span's first and last word."""
        dropout: float = Field(0.33, ge=0, lt=1)
        """Dropout of these vectors."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, SpanTrees):
            raise sp.ConfigError(
                "inference_net 'infnet.tree_crf' requires trees of labelled spans; use task 'infnet.parsing' with "
                "task.form=spans"
            )
        assert features is not None
        self.scores = BiaffineSpans(features.output_dim, config.size, len(task.space.labels), config.dropout)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> TreeCrfProposal:
        vectors = self.features(sp.X(x.inputs, x.inputs["words"] > 0, x.size))
        return TreeCrfProposal(self.space, F.pad(self.scores(vectors), (1, 0)).unsqueeze(1), x.mask)
