"""Feature network `encoder`: word, character and mark embeddings under an encoder of allennlp-light, chosen by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from allennlp_light.modules import FeedForward, InputVariationalDropout, TimeDistributed
from allennlp_light.modules.seq2seq_encoders import (
    FeedForwardEncoder,
    GatedCnnEncoder,
    GruSeq2SeqEncoder,
    LstmSeq2SeqEncoder,
    PassThroughEncoder,
    PytorchTransformer,
    StackedAlternatingLstmSeq2SeqEncoder,
    StackedBidirectionalLstmSeq2SeqEncoder,
)
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from spen_plugins.batch import X
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.schema import Config
from spen_plugins.task import Indexer, Task, WordInputs

UNKNOWN = 1
CHARACTERS = 1024
"""Rows of the table of characters; 0 is padding, 1 and 2 are a word's two ends."""
LONGEST = 40
"""Characters kept of a word."""
_PLAIN = 512
"""Characters with a row of their own, which are those of Latin scripts; the others share the rows that are left."""


class Encoder(FeatureNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; a token's vector doesn't depend on padding.

    `pass_through` and `feedforward` see a token alone, `gated-cnn-encoder` two more on each side per layer, the others
    the whole sentence. The output is `hidden` wide, twice that where there are two directions (`lstm`, `gru`,
    `stacked_bidirectional_lstm`, `gated-cnn-encoder`), and as wide as the embeddings for `pass_through`. All can be
    differentiated twice on a CPU; on a GPU cuDNN's `lstm` and `gru` can't.
    """

    class Config(Config):
        encoder: Literal[
            "lstm",
            "gru",
            "stacked_bidirectional_lstm",
            "alternating_lstm",
            "gated-cnn-encoder",
            "pytorch_transformer",
            "feedforward",
            "pass_through",
        ] = "lstm"
        """allennlp-light's name of the encoder; `alternating_lstm` is He et al.'s (2017) for semantic roles."""
        word_dim: int = Field(100, ge=1)
        """Width of word embeddings."""
        mark_dim: int = Field(32, ge=1)
        """Width of the embedding of each mark (the predicate's)."""
        char_dim: int = Field(16, ge=0)
        """Width of character embeddings; 0 for no characters."""
        char_filters: int = Field(32, ge=1)
        """Filters of each width over a word's characters."""
        char_widths: list[int] = Field([3], min_length=1)
        """Widths of those filters, in characters."""
        hidden: int = Field(200, ge=1)
        """Width of one direction of one layer."""
        layers: int = Field(2, ge=1)
        """Layers of the encoder."""
        heads: int = Field(4, ge=1)
        """Attention heads of `pytorch_transformer`."""
        dropout: float = Field(0.3, ge=0, lt=1)
        """Dropout of embeddings and output, one mask for all tokens of a sentence, and inside the encoder."""
        word_dropout: float = Field(0.05, ge=0, lt=1)
        """Share of words read as unknown in training."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, WordInputs):
            raise ConfigError(
                "features 'encoder' takes sentences (task 'srl'); this task's inputs are others; take 'mlp' or 'ngrams'"
            )
        if min(config.char_widths) < 1:
            raise ConfigError(f"features.char_widths: found {config.char_widths}; expected widths of at least 1")
        self.words = nn.Embedding(len(task.inputs.words), config.word_dim, padding_idx=0)
        self.marks = nn.ModuleDict({name: nn.Embedding(n, config.mark_dim) for name, n in task.inputs.marks.items()})
        for table in (self.words, *self.marks.values()):
            nn.init.normal_(table.weight, std=0.1)
        width = config.word_dim + config.mark_dim * len(self.marks)
        self.characters = None
        if config.char_dim:
            self.characters = nn.Embedding(CHARACTERS, config.char_dim, padding_idx=0)
            cnn = CharacterCnn(config.char_dim, config.char_filters, tuple(config.char_widths), nn.ReLU())
            self.cnn = TimeDistributed(cnn)
            width += cnn.get_output_dim()
        self.dropout = InputVariationalDropout(config.dropout)
        make, same_width = _ENCODERS[config.encoder]
        self.project = nn.Linear(width, config.hidden) if same_width else nn.Identity()
        self.encoder = make(config.hidden if same_width else width, config)
        self.output_dim = self.encoder.get_output_dim()
        self.contextual = config.encoder not in ("pass_through", "feedforward")

    def indexer(self) -> tuple[str, Indexer] | None:
        return ("characters", CharacterIndexer()) if self.characters is not None else None

    def forward(self, x: X) -> Tensor:
        words = x.inputs["words"]
        mask = x.mask if x.mask is not None else torch.ones_like(words, dtype=torch.bool)
        if self.training and self.config.word_dropout:
            hidden = torch.rand(words.shape, device=words.device) < self.config.word_dropout
            words = torch.where(hidden & mask, UNKNOWN, words)
        parts = [self.words(words), *(table(x.inputs[name]) for name, table in self.marks.items())]
        if self.characters is not None:
            ids = F.pad(x.inputs["characters"], (0, max(self.config.char_widths)))
            parts.append(self.cnn(self.characters(ids)))
        h = self.project(self.dropout(torch.cat(parts, -1)))
        # A row without tokens would be an empty sequence or a softmax over nothing; it counts as one token here.
        seen = mask | (F.one_hot(mask.new_zeros(len(mask)).long(), mask.shape[1]).bool() & ~mask.any(1, keepdim=True))
        # The fused attention kernels can't be differentiated twice.
        with sdpa_kernel(SDPBackend.MATH):
            h = self.encoder(h, seen)
        return self.dropout(h).masked_fill(~mask.unsqueeze(-1), 0)


class CharacterCnn(CnnEncoder):
    """allennlp-light's layers, `(word, character, char_dim)` -> `(word, filters * widths)`, over words padded enough.

    With a filter's width of padding after the longest word, each word ends in a window of padding alone, and more of
    them change no maximum: no mask is needed. The library's mask is NaN in float64: it adds that type's smallest number
    as a float32.
    """

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        columns = tokens.transpose(1, 2)
        return torch.cat([self._activation(layer(columns)).amax(2) for layer in self._convolution_layers], 1)


class CharacterIndexer(Indexer):
    """Characters of each word between its two ends: `"characters"` `(batch, token, character)`, below `CHARACTERS`."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def index(self, words: Sequence[str]) -> list[np.ndarray]:
        return [self._word(word) for word in words]

    def collate(self, items: Sequence[list[np.ndarray]]) -> dict[str, Tensor]:
        words = [word for item in items for word in item]
        sizes = np.array([len(word) for word in words])
        counts = np.array([len(item) for item in items])
        flat = np.zeros((len(words), sizes.max()), dtype=np.int64)
        flat[np.arange(sizes.max()) < sizes[:, None]] = np.concatenate(words)
        padded = np.zeros((len(items), counts.max(), sizes.max()), dtype=np.int64)
        padded[np.arange(counts.max()) < counts[:, None]] = flat
        return {"characters": torch.from_numpy(padded)}

    def _word(self, word: str) -> np.ndarray:
        if word not in self._known:
            points = [ord(character) for character in word[:LONGEST]]
            shared = CHARACTERS - 3 - _PLAIN
            rows = [3 + (point if point < _PLAIN else _PLAIN + point % shared) for point in points]
            self._known[word] = np.array([1, *rows, 2])
        return self._known[word]


def _between(config: Any) -> float:
    """Dropout between layers; PyTorch warns where there is nothing between."""
    return config.dropout if config.layers > 1 else 0.0


def _lstm(width: int, c: Any) -> nn.Module:
    return LstmSeq2SeqEncoder(width, c.hidden, c.layers, dropout=_between(c), bidirectional=True)


def _gru(width: int, c: Any) -> nn.Module:
    return GruSeq2SeqEncoder(width, c.hidden, c.layers, dropout=_between(c), bidirectional=True)


def _stacked(width: int, c: Any) -> nn.Module:
    return StackedBidirectionalLstmSeq2SeqEncoder(width, c.hidden, c.layers, layer_dropout_probability=c.dropout)


def _alternating(width: int, c: Any) -> nn.Module:
    # Its own (recurrent) dropout draws numbers in evaluation too, so that evaluating would change what training draws.
    return StackedAlternatingLstmSeq2SeqEncoder(width, c.hidden, c.layers)


def _gated_cnn(width: int, c: Any) -> nn.Module:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*weight_norm", category=FutureWarning)
        return GatedCnnEncoder(width, [[[3, width]]] * c.layers, dropout=c.dropout)


def _transformer(width: int, c: Any) -> nn.Module:
    if c.hidden % c.heads or c.hidden < 4:
        raise ConfigError(
            f"features.hidden: found {c.hidden} with {c.heads} heads; expected at least 4 and a multiple of heads"
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor", category=UserWarning)
        return PytorchTransformer(
            width, c.layers, 4 * width, c.heads, positional_encoding="sinusoidal", dropout_prob=c.dropout
        )


def _feedforward(width: int, c: Any) -> nn.Module:
    activations = [nn.ReLU() for _ in range(c.layers)]
    # The output's dropout comes after.
    dropout = [c.dropout] * (c.layers - 1) + [0.0]
    return FeedForwardEncoder(FeedForward(width, c.layers, [c.hidden] * c.layers, activations, dropout))


_ENCODERS: dict[str, tuple[Callable[[int, Any], nn.Module], bool]] = {
    "lstm": (_lstm, False),
    "gru": (_gru, False),
    "stacked_bidirectional_lstm": (_stacked, False),
    "alternating_lstm": (_alternating, False),
    "gated-cnn-encoder": (_gated_cnn, True),
    "pytorch_transformer": (_transformer, True),
    "feedforward": (_feedforward, False),
    "pass_through": (lambda width, c: PassThroughEncoder(width), False),
}
"""What makes each encoder, and whether it keeps the width of its input, which is then brought to `hidden` before."""
