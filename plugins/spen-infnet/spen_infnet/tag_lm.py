"""Tag language models as energies (Tu, Pang & Gimpel 2020, Sec. 5): the next tag given earlier tags, and words."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

import spen_plugins as sp
from spen_plugins.nn import Lstm, at_least_float32, require_tags, reverse_places, take_vectors

EPS = 1e-7
"""Added to a probability before its logarithm: a tag of probability 0 costs 16.1, and its gradient stays finite."""

Direction = Literal["forward", "backward"]


class LmConfig(sp.Config):
    """Settings shared by the tag language models."""

    hidden: int = Field(128, ge=1)
    """Width of the LSTM of each direction."""
    tag_dim: int = Field(32, ge=1)
    """Width of a tag's embedding; a soft tag's embedding is the mean of the embeddings, weighted by the tag."""
    weight: float = Field(1.0, ge=0)
    """w, the weight of the energy."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the LSTM's inputs and outputs (keep probability in the paper: 0.7). One mask per sentence and bound
    energy, so that the outputs that a loss compares are scored by the same thinned model."""


class Encoded(NamedTuple):
    """Result of `LanguageModel.encode`."""

    mask: Tensor | None
    """`(batch, token)`."""
    words: Tensor | None
    """`(token, batch, size)`."""
    dropout: Mapping[str, tuple[Tensor | None, Tensor | None]]
    """Factors of an LSTM's inputs and outputs, `(batch, size)`, by the reader's name."""


class LanguageModel(sp.Energy, ABC):
    """−w Σ log(y_tᵀ ȳ_t) over the tags of a sequence and its end, ȳ_t predicted by an LSTM over the previous soft tags.

    y_0 is the start of the sequence, and y_{T+1}, its end, is the last prediction. The backward model starts from the
    end and predicts t = T … 0. Each direction has its own parameters and stays within each sentence's length.

    On one-hot y this is the sequence's negative log-likelihood (up to `EPS`), so a model is trained on tagged text by
    minimising the energy of the text's own tags.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        if len(set(config.directions)) != len(config.directions):
            raise sp.ConfigError(f"energy.directions: found {config.directions}; expected each direction at most once")
        word_dim = 0 if features is None else features.output_dim
        self.readers = nn.ModuleDict(
            {
                f"{direction}_lm": TagReader(self.space.shape[-1], config.tag_dim, word_dim, config.hidden)
                for direction in config.directions
            }
        )

    def encode(self, x: sp.X) -> Encoded:
        words = None if self.features is None else self.features(x)
        like, p = next(self.readers.parameters()), self.config.dropout if self.training else 0.0
        masks = {
            name: (draw_mask(like, x.size, reader.width, p), draw_mask(like, x.size, reader.hidden, p))
            for name, reader in self.readers.items()
        }
        return Encoded(x.mask, None if words is None else words.transpose(0, 1), masks)

    def forward(self, features: Encoded, y: Tensor) -> Tensor:
        total = sum(terms.sum(-1) for terms in self.terms(features, y).values())
        return -self.config.weight * total

    def terms(self, features: Encoded, y: Tensor) -> dict[str, Tensor]:
        """log(y_tᵀ ȳ_t) of each direction in its reading order, `(batch, sample, token + 1)`, 0 after the end."""
        b, _, t, _ = y.shape
        token_mask = y.new_ones(t, b) if features.mask is None else features.mask.t().to(y)
        reverse_indices = reverse_places(token_mask)
        # Time first, the layout of LSTM kernels; samples become rows of the batch.
        y = y.permute(2, 0, 1, 3) * token_mask.view(t, b, 1, 1)
        terms = {}
        for name, reader in self.readers.items():
            tags, words = y, features.words
            if name == "backward_lm":
                tags = take_vectors(tags, reverse_indices, 0)
                words = words if words is None else take_vectors(words, reverse_indices, 0)
            log_p = reader(tags, words, token_mask.sum(0).long(), features.dropout[name])
            terms[name.removesuffix("_lm")] = log_p.permute(1, 2, 0)
        return terms


class TagLm(LanguageModel):
    """E(y) = −w Σ_{t=1}^{T+1} log(y_tᵀ h(y_0 … y_{t−1})) (Tu, Pang & Gimpel 2020, Eq. 8)."""

    class Config(LmConfig):
        directions: list[Direction] = Field(default=["forward"], min_length=1)
        """Directions whose models are summed: "forward" alone is the paper's GE(a), both are GE(b)."""


class WordTagLm(LanguageModel):
    """E(x, y) = −w Σ_{t=1}^{T+1} log(y_tᵀ g(x_0 … x_{t−1}, y_0 … y_{t−1})) (Tu, Pang & Gimpel 2020, Eq. 9).

    Like `tag_lm`, with the words read so far as further inputs: those before t forwards, after t backwards. So a tag is
    predicted without its own word. Words are vectors of a feature network for single tokens; x_0 is learned.
    """

    uses_features = True

    class Config(LmConfig):
        directions: list[Direction] = Field(default=["forward", "backward"], min_length=1)
        """Directions whose models are summed; the paper has both."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        assert features is not None
        if features.contextual:
            raise sp.ConfigError(
                f"energy 'infnet.word_tag_lm' predicts a tag from the words before it, but features "
                f"{type(features).__name__} reads the words after it as well; give the energy its own table, "
                "'features': {'type': 'encoder', 'encoder': 'pass_through'}"
            )
        super().__init__(config, task, features)


class TagReader(nn.Module):
    """One language model: the symbols read so far -> the distribution of the next tag or of the end. `words` is the
    width of a word's vector, 0 for a model that sees no words."""

    def __init__(self, tags: int, tag_dim: int, words: int, hidden: int) -> None:
        super().__init__()
        self.width, self.hidden = tag_dim + words, hidden
        self.tags = nn.Linear(tags, tag_dim, bias=False)
        nn.init.normal_(self.tags.weight, std=0.1)
        self.start = nn.Parameter(torch.randn(self.width) * 0.1)
        self.lstm = Lstm(self.width, hidden)
        self.next = nn.Linear(hidden, tags + 1)

    def forward(
        self, y: Tensor, words: Tensor | None, lengths: Tensor, dropout: tuple[Tensor | None, Tensor | None]
    ) -> Tensor:
        """log(y_tᵀ ȳ_t) `(token + 1, batch, sample)`, 0 after the end of a sequence.

        Shapes: y `(token, batch, sample, tag)`, zero on padding, in reading order; words `(token, batch, size)`;
        lengths `(batch,)`; dropout of inputs and of outputs `(batch, size)`.
        """
        t, b, n, k = y.shape
        symbols = self.tags(y)
        if words is not None:
            symbols = torch.cat([symbols, words.unsqueeze(2).expand(t, b, n, words.shape[-1])], -1)
        h = torch.cat([self.start.expand(1, b, n, self.width).to(symbols), symbols])
        h = apply_mask(h, dropout[0])
        h, _ = self.lstm(h.flatten(1, 2))
        predicted = torch.softmax(
            at_least_float32(self.next(apply_mask(h.view(t + 1, b, n, self.hidden), dropout[1]))), -1
        )
        # After the last tag of a sequence the next symbol is the end, the last class.
        positions = torch.arange(t + 1, device=y.device).unsqueeze(1)
        is_end = (positions == lengths).to(predicted).unsqueeze(-1)
        likelihoods = (at_least_float32(y) * predicted[:-1, ..., :k]).sum(-1)
        likelihoods = torch.cat([likelihoods, likelihoods.new_zeros(1, b, n)]) + is_end * predicted[..., k]
        return torch.log(likelihoods + EPS) * (positions <= lengths).unsqueeze(-1)


def draw_mask(like: Tensor, examples: int, size: int, p: float) -> Tensor | None:
    """Factors for vectors, `(examples, size)`; None for no dropout."""
    if not p:
        return None
    is_kept = torch.rand(examples, size, device=like.device) >= p
    return is_kept.to(like.dtype) / (1 - p)


def apply_mask(h: Tensor, mask: Tensor | None) -> Tensor:
    """`(token, batch, sample, size)` times a mask `(batch, size)`."""
    return h if mask is None else h * mask.unsqueeze(1)
