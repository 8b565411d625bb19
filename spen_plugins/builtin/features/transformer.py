"""Feature network `transformer`: any pretrained encoder of Hugging Face, a vector per word or text."""

from __future__ import annotations

import hashlib
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.builtin.features.pieces import PieceIndexer
from spen_plugins.builtin.features.pretrained import WEIGHTLESS, find_longest, load
from spen_plugins.builtin.features.reading import Reading, pool_texts, pool_words
from spen_plugins.builtin.features.stored import Stored, check_upper, compute_states, replace_states
from spen_plugins.builtin.features.tuning import (
    Float32Attention,
    TransformerConfig,
    add_adapters,
    check_adapters,
    checkpoint_gradients,
    find_layers,
    find_lowest,
    freeze,
    is_casting,
    learn_types,
)
from spen_plugins.builtin.features.words import token_mask
from spen_plugins.data.text import sha256
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.features import FeatureNetwork
from spen_plugins.files import writing_folder
from spen_plugins.task import Indexer, Task, TextInputs, WordInputs

_ASSETS = re.compile(r".*\.model|(config|tokenizer.*|vocab.*|merges|special_tokens_map|added_tokens)\.(json|txt)")
"""Files of a model's folder that hold its architecture and its tokeniser."""


class Transformer(FeatureNetwork):
    """Sentences -> `(batch, token, output_dim)`, zero on padding; texts -> `(batch, output_dim)`.

    A sentence longer than the model's positions is read in overlapping windows; a word's vector is from the window
    where it has most context, and a text's vector is a mean over its windows.

    The first mark (the predicate) is encoded by token types if the model has two, as in SEAL's SRL model, and
    otherwise, like any further mark, by a learned vector added to the word pieces' embeddings. The fused kernels of
    `sdpa` can't be differentiated twice: the loop replaces them in stages that need this; in your own code, use
    `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)` or `eager`.
    """

    large = True
    shareable = ("model", "attention", "attention_dropout", "frozen", "lora", "gradient_checkpointing", "store_gib")

    Config = TransformerConfig

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        self._is_text = isinstance(task.inputs, TextInputs)
        if not isinstance(task.inputs, (WordInputs, TextInputs)):
            raise ConfigError("features 'transformer' requires sentences or texts, but this task has other inputs")
        self.encoder, self._tokenizer = load(config.model, config.attention, config.attention_dropout)
        settings = self.encoder.config
        self.output_dim = settings.hidden_size
        self._indexer = PieceIndexer(
            _name_indexer(config.model), self._tokenizer, find_longest(self.encoder, self._tokenizer)
        )
        marks = {} if self._is_text else dict(task.inputs.marks)
        self._type_mark = next(iter(marks), None) if getattr(settings, "type_vocab_size", 0) >= 2 else None
        marks.pop(self._type_mark, None)
        self.marks = nn.ModuleDict({name: nn.Embedding(n, self.output_dim, padding_idx=0) for name, n in marks.items()})
        for table in self.marks.values():
            nn.init.normal_(table.weight, std=0.02)
            nn.init.zeros_(table.weight[0].detach())
        self.dropout = nn.Dropout(config.dropout)
        self._frozen = find_lowest(self.encoder, config.frozen)
        if config.lora is not None:
            check_adapters(self.encoder, config.lora, config.frozen)
            add_adapters(self.encoder, config.lora, config.frozen)
            if self._type_mark is not None:
                learn_types(self.encoder)
        freeze(self._frozen)
        if config.gradient_checkpointing:
            checkpoint_gradients(self.encoder)
        self._is_storing, self._store = False, Stored(config.store_gib)
        if config.store_gib:
            self._stored_layers = self._find_stored_layers()

    def _find_stored_layers(self) -> list[nn.Module]:
        """The layers whose states are stored.

        Raises:
            ConfigError: there are no such layers, or their states change in training.
        """
        frozen = self.config.frozen
        if frozen in (0, "embeddings"):
            raise ConfigError(
                f"features.store_gib stores the states of frozen layers, but frozen={frozen!r} freezes none; "
                "set features.frozen to a number of layers or 'all'"
            )
        if self.marks:
            raise ConfigError(
                "features.store_gib: this encoder has no token types, so trained vectors below its layers mark the "
                "predicate, and nothing can be stored; set reading=sentence or store_gib=0"
            )
        if frozen == "all":
            return []
        layers = find_layers(self.encoder)[:frozen]
        pieces = self._tokenizer(["a", "sentence"], is_split_into_words=True, return_tensors="pt")["input_ids"]
        self._other_outputs = check_upper(self.encoder, self._frozen, layers, pieces)
        return layers

    def train(self, mode: bool = True) -> Transformer:
        super().train(mode)
        self._is_storing |= mode and self.config.store_gib > 0  # prediction sees each sentence once, and stores nothing
        for module in self._frozen:
            module.eval()
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if self._store:
            frozen_ids = {id(p) for module in self._frozen for p in module.parameters()}
            pairs = ((p, state_dict.get(prefix + name)) for name, p in self.named_parameters() if id(p) in frozen_ids)
            if any(value is not None and not torch.equal(p.cpu(), value.cpu()) for p, value in pairs):
                self._store.clear()
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _apply(self, fn: Any, recurse: bool = True) -> Transformer:
        dtype = self.encoder.dtype
        super()._apply(fn, recurse)
        if self.encoder.dtype != dtype:
            self._store.clear()
        return self

    def shared_part(self) -> nn.Module:
        return self.encoder

    def share(self, other: FeatureNetwork) -> None:
        assert isinstance(other, Transformer)
        self.encoder, self._frozen = other.encoder, other._frozen
        if self.config.store_gib:
            self._store, self._stored_layers = other._store, other._stored_layers

    def save_assets(self, folder: Path) -> None:
        """Saves the encoder's architecture and tokeniser; its weights are among the run's."""
        with writing_folder(folder / _name_folder(self.config.model)) as target:
            self.encoder.config.save_pretrained(target)
            self._tokenizer.save_pretrained(target)
            (target / WEIGHTLESS).write_text("The weights are among the run's own.\n", encoding="utf-8")

    @classmethod
    def relocated(cls, config: Any, assets: Path) -> Any:
        target = assets / _name_folder(config.model)
        if not target.is_dir():  # no download instead
            raise RunError(
                f"found no folder {target} with the tokeniser of {config.model!r}; copy the whole folder of the run or "
                "pipeline"
            )
        return config.model_copy(update={"model": str(target)})

    def checksums(self) -> dict[str, str]:
        """Checksums of a folder's architecture and tokeniser; a checkpoint has the weights."""
        return {
            str(path): sha256(path)
            for path in sorted(Path(self.config.model).glob("*"))
            if _ASSETS.fullmatch(path.name)
        }

    def indexer(self) -> tuple[str, Indexer]:
        return self._indexer.name, self._indexer

    def forward(self, x: X) -> Tensor:
        if not self._is_text:
            token_mask(x)
        batch = self._read(x)
        if self._is_storing and self.config.frozen == "all":
            kind = f"{'text' if self._is_text else 'words'} {self.config.pooling}"
            example_vectors = self._store.compute(
                batch, lambda example: self._pool(example, self._compute_states(example))[0], kind
            )
            vectors = torch.stack(example_vectors) if self._is_text else _scatter(example_vectors, batch.first >= 0)
        elif self._is_storing:
            vectors = self._pool(batch, self._compute_upper_states(batch))
        else:
            vectors = self._pool(batch, self._compute_states(batch))
        vectors = self.dropout(vectors)
        return vectors if self._is_text else vectors * (batch.first >= 0).unsqueeze(-1)

    def _read(self, x: X) -> Reading:
        ids, owner, first, windows = (
            x.inputs[f"{self._indexer.name}.{part}"] for part in ("ids", "owner", "first", "windows")
        )
        names = [*self.marks, *([] if self._type_mark is None else [self._type_mark])]
        marks = {name: torch.where(owner >= 0, x.inputs[name].gather(1, owner.clamp(min=0)), 0) for name in names}
        return Reading(ids, owner, first, windows, marks)

    def _make_inputs(self, batch: Reading) -> dict[str, Tensor]:
        """The encoder's arguments, with a row for each window."""
        inputs = {"attention_mask": batch.rows((batch.owner > -2).long())}
        if self._type_mark is not None:
            inputs["token_type_ids"] = (batch.rows(batch.marks[self._type_mark]) > 0).long()
        if self.marks:
            embedded = self.encoder.get_input_embeddings()(batch.rows(batch.ids))
            tables = self.marks.items()
            inputs["inputs_embeds"] = embedded + sum(table(batch.rows(batch.marks[name])) for name, table in tables)
        else:
            inputs["input_ids"] = batch.rows(batch.ids)
        return inputs

    def _compute_states(self, batch: Reading) -> Tensor:
        """The encoder's last states, `(batch, piece, dim)`."""
        with Float32Attention() if is_casting() else nullcontext():
            return batch.join(self.encoder(**self._make_inputs(batch)).last_hidden_state)

    def _compute_upper_states(self, batch: Reading) -> Tensor:
        """The encoder's last states, `(batch, piece, dim)`, from stored states of its lower layers."""
        example_states = self._store.compute(
            batch,
            lambda example: compute_states(self.encoder, self._stored_layers, self._make_inputs(example)).flatten(0, 1),
        )
        states = batch.rows(_scatter(example_states, batch.owner > -2))
        with replace_states(self._stored_layers, states, self._other_outputs):
            return self._compute_states(batch)

    def _pool(self, batch: Reading, states: Tensor) -> Tensor:
        """Vectors of texts, `(batch, dim)`, or of words, `(batch, token, dim)`."""
        pool = pool_texts if self._is_text else pool_words
        return pool(states, batch, self.config.pooling)


def _scatter(vectors: list[Tensor], exists: Tensor) -> Tensor:
    """Examples' vectors, each `(number, dim)` -> `(*exists.shape, dim)`: in order where `exists`, 0 elsewhere."""
    scattered = vectors[0].new_zeros(*exists.shape, vectors[0].shape[-1])
    scattered[exists] = torch.cat(vectors)
    return scattered


def _name_folder(model: str) -> str:
    """Folder name for a model's name or path, different for each model."""
    letters = re.sub(r"[^A-Za-z0-9_-]+", "-", model).strip("-")[-80:]
    digest = hashlib.sha256(model.encode()).hexdigest()[:12]
    return letters if letters == model else f"{letters}-{digest}".strip("-")


def _name_indexer(model: str) -> str:
    """Indexer name, shared by equal models; without dots, which separate parts of a name."""
    return "pieces:" + model.replace("%", "%25").replace(".", "%2E")
