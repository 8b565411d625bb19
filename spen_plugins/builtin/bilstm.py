"""Feature network `bilstm`: word, affix and mark embeddings under a stack of bidirectional LSTMs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.schema import Config
from spen_plugins.task import Indexer, Task, WordInputs

AFFIX_BUCKETS = 6000
UNKNOWN = 1


class BiLstm(FeatureNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; a token's vector doesn't depend on padding.

    Each direction runs over its own copy of the sentence, the backward one over the words reversed inside each length:
    the same output as packing at about a third of its time. With `mark_state`, each token also sees the state at the
    first token of each mark (the predicate), by a hidden layer, so that a role may depend on both.
    """

    class Config(Config):
        word_dim: int = Field(100, ge=1)
        """Width of word embeddings."""
        mark_dim: int = Field(32, ge=1)
        """Width of the embedding of each mark (the predicate's)."""
        affix_dim: int = Field(50, ge=0)
        """Width of the embedding of a word's prefix, suffixes and shape, which unknown words have too; 0 for none."""
        hidden: int = Field(200, ge=1)
        """Width of one direction of one layer."""
        layers: int = Field(2, ge=1)
        """LSTM layers."""
        mark_state: bool = True
        """Whether each token also sees the state at the marked token (the predicate)."""
        dropout: float = Field(0.3, ge=0, lt=1)
        """Dropout of embeddings, between layers and of the output; one mask for all tokens of a sentence."""
        word_dropout: float = Field(0.05, ge=0, lt=1)
        """Share of words read as unknown in training."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, WordInputs):
            raise ConfigError(
                "features 'bilstm' takes sentences (task 'srl'); this task's inputs are others; take 'mlp' or 'ngrams'"
            )
        self.words = nn.Embedding(len(task.inputs.words), config.word_dim, padding_idx=0)
        self.marks = nn.ModuleDict({name: nn.Embedding(n, config.mark_dim) for name, n in task.inputs.marks.items()})
        self.affixes = nn.EmbeddingBag(AFFIX_BUCKETS, config.affix_dim, mode="sum") if config.affix_dim else None
        for table in (self.words, self.affixes, *self.marks.values()):
            if table is not None:
                nn.init.normal_(table.weight, std=0.1)
        width = config.word_dim + config.affix_dim + config.mark_dim * len(self.marks)
        self.forwards, self.backwards = nn.ModuleList(), nn.ModuleList()
        for _ in range(config.layers):
            self.forwards.append(_lstm(width, config.hidden))
            self.backwards.append(_lstm(width, config.hidden))
            width = 2 * config.hidden
        self.output_dim = width
        marked = len(self.marks) if config.mark_state else 0
        self.token_part = nn.Linear(width, width) if marked else None
        self.mark_parts = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(marked))

    def indexer(self) -> tuple[str, Indexer] | None:
        return ("affixes", AffixIndexer()) if self.affixes is not None else None

    def forward(self, x: X) -> Tensor:
        words = x.inputs["words"]
        b, t = words.shape
        mask = x.mask if x.mask is not None else words.new_ones(b, t, dtype=torch.bool)
        if self.training and self.config.word_dropout:
            hidden = torch.rand(words.shape, device=words.device) < self.config.word_dropout
            words = torch.where(hidden & mask, UNKNOWN, words)
        parts = [self.words(words)]
        if self.affixes is not None:
            affixes = x.inputs["affixes"]
            parts.append(self.affixes(affixes.reshape(b * t, -1)).reshape(b, t, -1))
        parts.extend(table(x.inputs[name]) for name, table in self.marks.items())
        # Time first inside, as the LSTM kernels want it.
        h = self._dropped(torch.cat(parts, -1).transpose(0, 1))
        back = _reversal(mask).t().unsqueeze(-1)
        for ahead, behind in zip(self.forwards, self.backwards, strict=True):
            left, _ = ahead(h)
            right, _ = behind(h.gather(0, back.expand_as(h)))
            h = self._dropped(torch.cat([left, right.gather(0, back.expand_as(right))], -1))
        h = h.transpose(0, 1)
        if self.token_part is not None:
            rows = torch.arange(b, device=words.device)
            total = self.token_part(h)
            for name, part in zip(self.marks, self.mark_parts, strict=True):
                at = (x.inputs[name] > 0).int().argmax(1)
                total = total + part(h[rows, at]).unsqueeze(1)
            h = self._dropped(torch.relu(total).transpose(0, 1)).transpose(0, 1)
        return h * mask.unsqueeze(-1)

    def _dropped(self, h: Tensor) -> Tensor:
        """Dropout of `(token, batch, width)` with one mask per sentence (Gal & Ghahramani 2016)."""
        p = self.config.dropout
        if not self.training or not p:
            return h
        keep = (torch.rand(h.shape[1:], device=h.device) >= p).to(h.dtype) / (1 - p)
        return h * keep


class AffixIndexer(Indexer):
    """Hashed prefix, suffixes and shape of a word: `"affixes"` `(batch, token, 4)`, numbers below `AFFIX_BUCKETS`."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def index(self, words: Sequence[str]) -> np.ndarray:
        return np.stack([self._word(word) for word in words])

    def collate(self, items: Sequence[np.ndarray]) -> dict[str, Tensor]:
        length = max(len(item) for item in items)
        padded = np.zeros((len(items), length, 4), dtype=np.int64)
        for row, item in zip(padded, items, strict=True):
            row[: len(item)] = item
        return {"affixes": torch.from_numpy(padded)}

    def _word(self, word: str) -> np.ndarray:
        if word not in self._known:
            lower = word.lower()
            keys = (f"p{lower[:3]}", f"s{lower[-2:]}", f"t{lower[-3:]}", f"x{_shape(word)}")
            # zlib's checksum is the same in every process; Python's own hash of a string is not.
            self._known[word] = np.array([1 + zlib.crc32(k.encode()) % (AFFIX_BUCKETS - 1) for k in keys])
        return self._known[word]


def _shape(word: str) -> str:
    """Cases and digits with runs made short: "McDonald's" -> "XxXx'x"."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word[:20]]
    return "".join(kind for i, kind in enumerate(kinds) if not i or kind != kinds[i - 1])


def _lstm(before: int, hidden: int) -> nn.LSTM:
    lstm = nn.LSTM(before, hidden)
    nn.init.xavier_uniform_(lstm.weight_ih_l0)
    for block in lstm.weight_hh_l0.detach().chunk(4):
        nn.init.orthogonal_(block)
    nn.init.zeros_(lstm.bias_ih_l0)
    nn.init.zeros_(lstm.bias_hh_l0)
    with torch.no_grad():  # the forget gate begins open (Jozefowicz et al. 2015)
        lstm.bias_ih_l0[hidden : 2 * hidden] = 1.0
    return lstm


def _reversal(mask: Tensor) -> Tensor:
    """`(batch, token)` positions that turn each row around inside its length and leave padding in place."""
    place = torch.arange(mask.shape[1], device=mask.device).unsqueeze(0)
    length = mask.sum(1, keepdim=True)
    return torch.where(place < length, length - 1 - place, place)
