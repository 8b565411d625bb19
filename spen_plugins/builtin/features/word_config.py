"""Settings of the inputs of the networks `bilstm` and `encoder`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt, field_validator

from spen_plugins.settings.config import Config


class VectorsConfig(Config):
    """Word vectors from a file."""

    file: str
    """File in GloVe's or word2vec's text format, a word and numbers per line, or the `.safetensors`
    file in which a run keeps them; `data:` paths are below $SPEN_DATA."""
    tune: bool = False
    """If true, the vectors are trained; otherwise only the one shared by words that the file lacks."""
    fold: Literal["none", "lower", "fallback"] = "fallback"
    """Look-up of a word: as written ("none"), in lower case ("lower"), or as written and then in lower case
    ("fallback")."""
    digits: Literal["keep", "zero"] = "keep"
    """Look-up of digits: as they are, or every digit as 0 ("zero")."""


class ClustersConfig(Config):
    """Brown clusters from a file."""

    file: str
    """Path in bits, word and count per line, tab-separated; `data:` paths are below $SPEN_DATA."""
    prefixes: list[PositiveInt] = Field([2, 4, 6, 8, 12, 16], min_length=1)
    """Lengths in bits of the path prefixes that are used, each with its own table."""
    dim: int = Field(8, ge=1)
    """Width of the embedding of each prefix."""

    @field_validator("prefixes")
    @classmethod
    def _check_distinct(cls, prefixes: list[int]) -> list[int]:
        if len(set(prefixes)) < len(prefixes):
            raise ValueError(f"found {prefixes}; expected different lengths")
        return prefixes


class WordConfig(Config):
    """Inputs of a word network, all optional, and its size."""

    word_dim: int = Field(100, ge=0)
    """Width of word embeddings; 0 for none."""
    mark_dim: int = Field(32, ge=0)
    """Width of the embedding of each mark (the predicate's); 0 for none."""
    affix_dim: int = Field(0, ge=0)
    """Width of the embedding of a word's prefix, suffixes and shape, also for unknown words; 0 for none."""
    char_dim: int = Field(0, ge=0)
    """Width of character embeddings, input of a convolution; 0 for no characters."""
    char_filters: int = Field(32, ge=1)
    """Filters of each width over a word's characters."""
    char_widths: list[PositiveInt] = Field([3], min_length=1)
    """Widths of those filters, in characters."""
    column_dim: int = Field(16, ge=0)
    """Width of the embedding of each further column of the data (part of speech, chunk); 0 for none."""
    case_dim: int = Field(0, ge=0)
    """Width of the embedding of the kind of a word's first letter: lower, upper, digit, other; 0 for none."""
    hash_dim: int = Field(0, ge=0)
    """Width of hashed embeddings, which need no vocabulary; 0 for none."""
    hash_rows: int = Field(5000, ge=2)
    """Number of rows of hashed embeddings."""
    vectors: VectorsConfig | None = None
    """Vectors from a file; null for none."""
    clusters: ClustersConfig | None = None
    """Brown clusters from a file; null for none."""
    word_dropout: float = Field(0.05, ge=0, lt=1)
    """Share of words read as unknown in training, and of vectors, clusters and column values, drawn separately."""
    hidden: int = Field(200, ge=1)
    """Width of one direction of one layer."""
    layers: int = Field(2, ge=1, le=1000)
    """Layers above the words."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of embeddings, between layers and of the output; one mask for all tokens of a sentence, but between the
    layers of `encoder`."""
