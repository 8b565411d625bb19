"""Feature network `encoder`: words, characters, marks and more under an encoder of allennlp-light, chosen by name."""

from __future__ import annotations

from typing import Any, Literal

from allennlp_light.modules import InputVariationalDropout
from allennlp_light.modules.seq2seq_encoders import GruSeq2SeqEncoder, LstmSeq2SeqEncoder, PassThroughEncoder
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.batch import X
from spen_plugins.builtin.features.word_config import WordConfig
from spen_plugins.builtin.features.words import WordNetwork
from spen_plugins.features import FeatureNetwork
from spen_plugins.task import Task


class Encoder(WordNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; a token's vector doesn't depend on padding.

    `pass_through` sees a single token, and its output has the embeddings' width; `lstm` and `gru` see the whole
    sentence, and theirs has twice the width `hidden`. All can be differentiated twice on a CPU; on a GPU cuDNN's `lstm`
    and `gru` can't.
    """

    class Config(WordConfig):
        encoder: Literal["lstm", "gru", "pass_through"] = "lstm"
        """Name of the encoder in allennlp-light."""
        char_dim: int = Field(16, ge=0)
        """Width of character embeddings, under a convolution; 0 for no characters."""
        hidden: int = Field(200, ge=1)
        """Width of one direction of one layer."""
        layers: int = Field(2, ge=1, le=1000)
        """Layers of the encoder."""
        dropout: float = Field(0.3, ge=0, lt=1)
        """Dropout of embeddings and output, one mask for all tokens of a sentence, and between the encoder's layers."""

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, "encoder", reader)
        self.dropout = InputVariationalDropout(config.dropout)
        if config.encoder == "pass_through":
            self.encoder = PassThroughEncoder(self.word_width)
        else:
            make = {"lstm": LstmSeq2SeqEncoder, "gru": GruSeq2SeqEncoder}[config.encoder]
            between = config.dropout if config.layers > 1 else 0.0  # for a single layer PyTorch warns
            self.encoder = make(self.word_width, config.hidden, config.layers, dropout=between, bidirectional=True)
        self.output_dim = self.encoder.get_output_dim()
        self.contextual = config.encoder != "pass_through" or reader is not None

    def forward(self, x: X) -> Tensor:
        words, mask = self._embed(x)
        # A row without tokens would be an empty sequence; it is treated as one token here.
        seen = mask | (F.one_hot(mask.new_zeros(len(mask)).long(), mask.shape[1]).bool() & ~mask.any(1, keepdim=True))
        h = self.encoder(self.dropout(words), seen)
        return self.dropout(h).masked_fill(~mask.unsqueeze(-1), 0)
