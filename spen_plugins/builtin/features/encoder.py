"""Feature network `encoder`: words, characters, marks and more under an encoder of allennlp-light, chosen by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

from allennlp_light.modules import FeedForward, InputVariationalDropout
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
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from spen_plugins.batch import X
from spen_plugins.builtin.features.word_config import WordConfig
from spen_plugins.builtin.features.words import WordNetwork
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.task import Task


class Encoder(WordNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; a token's vector doesn't depend on padding.

    `pass_through` and `feedforward` see a single token, `gated-cnn-encoder` two more on each side per layer, the others
    the whole sentence. The output has width `hidden`, or twice that with two directions (`lstm`, `gru`,
    `stacked_bidirectional_lstm`, `gated-cnn-encoder`); for `pass_through` it has the embeddings' width. All can be
    differentiated twice on a CPU; on a GPU cuDNN's `lstm` and `gru` can't.
    """

    class Config(WordConfig):
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
        """Name of the encoder in allennlp-light; `alternating_lstm` is that of He et al. (2017) for semantic roles."""
        char_dim: int = Field(16, ge=0)
        """Width of character embeddings, under a convolution; 0 for no characters."""
        hidden: int = Field(200, ge=1)
        """Width of one direction of one layer."""
        layers: int = Field(2, ge=1, le=1000)
        """Layers of the encoder."""
        heads: int = Field(4, ge=1)
        """Attention heads of `pytorch_transformer`."""
        dropout: float = Field(0.3, ge=0, lt=1)
        """Dropout of embeddings and output, one mask for all tokens of a sentence, and inside the encoder."""

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, "encoder", reader)
        width = self.word_width
        self.dropout = InputVariationalDropout(config.dropout)
        make, same_width = _ENCODERS[config.encoder]
        self.project = nn.Linear(width, config.hidden) if same_width else nn.Identity()
        self.encoder = make(config.hidden if same_width else width, config)
        self.output_dim = self.encoder.get_output_dim()
        self.contextual = config.encoder not in ("pass_through", "feedforward") or reader is not None

    def forward(self, x: X) -> Tensor:
        words, mask = self._embed(x)
        h = self.project(self.dropout(words))
        # A row without tokens would be an empty sequence or a softmax over nothing; it is treated as one token here.
        seen = mask | (F.one_hot(mask.new_zeros(len(mask)).long(), mask.shape[1]).bool() & ~mask.any(1, keepdim=True))
        # The fused attention kernels can't be differentiated twice.
        with sdpa_kernel(SDPBackend.MATH):
            h = self.encoder(h, seen)
        return self.dropout(h).masked_fill(~mask.unsqueeze(-1), 0)


def _between(config: Any) -> float:
    """Dropout between layers; 0 for a single layer, where PyTorch warns."""
    return config.dropout if config.layers > 1 else 0.0


def _lstm(width: int, c: Any) -> nn.Module:
    return LstmSeq2SeqEncoder(width, c.hidden, c.layers, dropout=_between(c), bidirectional=True)


def _gru(width: int, c: Any) -> nn.Module:
    return GruSeq2SeqEncoder(width, c.hidden, c.layers, dropout=_between(c), bidirectional=True)


def _stacked(width: int, c: Any) -> nn.Module:
    return StackedBidirectionalLstmSeq2SeqEncoder(width, c.hidden, c.layers, layer_dropout_probability=c.dropout)


def _alternating(width: int, c: Any) -> nn.Module:
    # Its own (recurrent) dropout draws random numbers in evaluation, too, which would change those of training.
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
    # Dropout of the output is applied afterwards.
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
"""Constructor of each encoder, and true if it keeps the width of its input, which is then projected to `hidden`."""
