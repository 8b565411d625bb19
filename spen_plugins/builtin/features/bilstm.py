"""Feature networks `bilstm` and `encoder`: words, letters, marks and more under our own LSTMs or allennlp-light's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from allennlp_light.modules import InputVariationalDropout
from allennlp_light.modules.seq2seq_encoders import GruSeq2SeqEncoder, LstmSeq2SeqEncoder, PassThroughEncoder
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.batch import X
from spen_plugins.builtin.features.word_config import WordConfig
from spen_plugins.builtin.features.words import WordNetwork
from spen_plugins.features import FeatureNetwork
from spen_plugins.nn import Lstm, read_both_ways, reverse_places
from spen_plugins.task import Task


class BiLstm(WordNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; a token's vector doesn't depend on padding.

    Each direction runs over its own copy of the sentence, the backward one over the words reversed within each length.
    The output is the same as with packing, in about a third of the time. With `mark_state`, each token also sees
    the state at the first token of each mark (the predicate), through a hidden layer, so that a role may depend on
    both.
    """

    class Config(WordConfig):
        affix_dim: int = Field(50, ge=0)
        """Width of the embedding of a word's prefix, suffixes and shape, also for unknown words; 0 for none."""
        mark_state: bool = True
        """If true, each token also sees the state at the marked token (the predicate)."""

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, "bilstm", reader)
        width = self.word_width
        self.forwards, self.backwards = make_lstms(width, config.hidden, config.layers)
        self.output_dim = width = 2 * config.hidden
        self._mark_names = list(task.inputs.marks) if config.mark_state else []
        self.token_part = nn.Linear(width, width) if self._mark_names else None
        self.mark_parts = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in self._mark_names)

    def forward(self, x: X) -> Tensor:
        words, mask = self._embed(x)
        h = run_lstms(words, mask, self.forwards, self.backwards, self._drop)
        if self.token_part is not None:
            rows = torch.arange(len(h), device=h.device)
            total = self.token_part(h)
            for name, part in zip(self._mark_names, self.mark_parts, strict=True):
                positions = (x.inputs[name] > 0).int().argmax(1)
                total = total + part(h[rows, positions]).unsqueeze(1)
            h = self._drop(torch.relu(total).transpose(0, 1)).transpose(0, 1)
        return h * mask.unsqueeze(-1)

    def _drop(self, h: Tensor) -> Tensor:
        return drop_words(h, self.config.dropout if self.training else 0.0)


def make_lstms(width: int, hidden: int, layers: int) -> tuple[nn.ModuleList, nn.ModuleList]:
    """The layers of each direction, over inputs of this width."""
    forwards, backwards = nn.ModuleList(), nn.ModuleList()
    for layer in range(layers):
        input_width = 2 * hidden if layer else width
        forwards.append(Lstm(input_width, hidden))
        backwards.append(Lstm(input_width, hidden))
    return forwards, backwards


def run_lstms(
    h: Tensor,
    mask: Tensor,
    forwards: nn.ModuleList,
    backwards: nn.ModuleList,
    dropout: Callable[[Tensor], Tensor],
) -> Tensor:
    """`(batch, token, width)` -> `(batch, token, 2 * hidden)` by the LSTMs, with dropout around each layer."""
    # Time first, the layout of LSTM kernels.
    h = dropout(h.transpose(0, 1))
    reversed_places = reverse_places(mask.t())
    for forward_layer, backward_layer in zip(forwards, backwards, strict=True):
        h = dropout(read_both_ways(h, reversed_places, forward_layer, backward_layer))
    return h.transpose(0, 1)


def drop_words(h: Tensor, p: float) -> Tensor:
    """Dropout of `(token, batch, width)` with one mask per sentence (Gal & Ghahramani 2016)."""
    # allennlp-light's InputVariationalDropout needs the batch first and draws other random numbers: scores would
    # change.
    if not p:
        return h
    scale = (torch.rand(h.shape[1:], device=h.device) >= p).to(h.dtype) / (1 - p)
    return h * scale


class Encoder(WordNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; a token's vector doesn't depend on padding.

    `pass_through` sees a single token, and its output has the embeddings' width; `lstm` and `gru` see the whole
    sentence, and their output has twice the width `hidden`. All can be differentiated twice on a
    CPU; on a GPU cuDNN's `lstm` and `gru` can't.
    """

    class Config(WordConfig):
        encoder: Literal["lstm", "gru", "pass_through"] = "lstm"
        """Name of the encoder in allennlp-light."""
        char_dim: int = Field(16, ge=0)
        """Width of character embeddings, under a convolution; 0 for no characters."""

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, "encoder", reader)
        self.dropout = InputVariationalDropout(config.dropout)
        if config.encoder == "pass_through":
            self.encoder = PassThroughEncoder(self.word_width)
        else:
            encoder_class = {"lstm": LstmSeq2SeqEncoder, "gru": GruSeq2SeqEncoder}[config.encoder]
            layer_dropout = config.dropout if config.layers > 1 else 0.0  # for a single layer PyTorch warns
            self.encoder = encoder_class(
                self.word_width, config.hidden, config.layers, dropout=layer_dropout, bidirectional=True
            )
        self.output_dim = self.encoder.get_output_dim()
        self.contextual = config.encoder != "pass_through" or reader is not None

    def forward(self, x: X) -> Tensor:
        words, mask = self._embed(x)
        # A row without tokens would be an empty sequence; it is treated as one token here.
        is_read = mask | (
            F.one_hot(mask.new_zeros(len(mask)).long(), mask.shape[1]).bool() & ~mask.any(1, keepdim=True)
        )
        h = self.encoder(self.dropout(words), is_read)
        return self.dropout(h).masked_fill(~mask.unsqueeze(-1), 0)
