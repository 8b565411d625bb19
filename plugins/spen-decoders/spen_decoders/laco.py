"""Inference net `laco`: reads text and labels together, and labels attend to words (Zhang et al. 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spen_decoders.seqtag import require_labels
from spen_plugins import BoundEnergy, FeatureNetwork, InferenceNet, Proposal, Task, X
from spen_plugins.nn import take_vectors

WINDOW = 11
"""Number of words on which the weight of a word depends; the released code has 10, which has no middle."""


class Laco(InferenceNet):
    """Independent labels from one vector of the text, its words' mean by label attention: a_w = tanh(max_l ReLU(conv
    G)_wl), G the cosines of each word with each label, with a window of words.

    The released code also convolves over neighbouring labels, whose order has no meaning. `proposal.features` are the
    labels' vectors, from which the trainer `decoders.laco` predicts which labels occur together.
    """

    uses_features = True

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_labels(self, "laco")
        labels, dim = len(task.space.labels), features.output_dim
        self.attention = nn.Conv1d(labels, labels, WINDOW, padding=WINDOW // 2)
        self.output = nn.Linear(dim, labels)
        self.pair = nn.Linear(2 * dim, 1)
        self.given = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))
        self.other = nn.Linear(2 * dim, 1)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        words, is_word, labels = self.features.split(x)
        document = self.attend(words, is_word, labels)
        return self.space.independent(self.output(document).unsqueeze(1), features=labels)

    def attend(self, words: Tensor, is_word: Tensor, labels: Tensor) -> Tensor:
        """The text's vector, `(batch, dim)`: Σ_w a_w h_w over the number of words.

        Shapes: words `(batch, word, dim)`, is_word `(batch, word)`, labels `(batch, label, dim)`.
        """
        match = F.normalize(words, dim=2) @ F.normalize(labels, dim=2).transpose(1, 2)
        weight = torch.tanh(torch.relu(self.attention(match.transpose(1, 2))).amax(1)) * is_word
        return (weight.unsqueeze(1) @ words).squeeze(1) / is_word.sum(1, keepdim=True)

    def score_pairs(self, labels: Tensor, pairs: Tensor) -> Tensor:
        """Logits that both labels of a pair are relevant if the first is, `(batch,)`.

        Args:
            labels: the labels' vectors, `(batch, label, dim)`.
            pairs: two labels of each example, `(batch, 2)`.
        """
        vectors = take_vectors(labels, pairs)
        return self.pair(vectors.flatten(1)).squeeze(1)

    def score_others(self, labels: Tensor, relevant_label: Tensor) -> Tensor:
        """Logits that each label is relevant, given a relevant one, `(batch, label)`; labels as in `score_pairs`."""
        hidden = self.given(labels)
        given_vector = take_vectors(hidden, relevant_label.unsqueeze(1))
        return self.other(torch.cat([hidden, given_vector.expand_as(hidden)], 2)).squeeze(2)
