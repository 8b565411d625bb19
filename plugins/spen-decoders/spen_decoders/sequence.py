"""Inference net `sequence`: writes a label set one label at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from spen_decoders.orders import order_by_frequency
from spen_decoders.reading import read_words
from spen_decoders.sequences import FreeSequences, LabelSequences
from spen_decoders.writer import Writer
from spen_plugins import BoundEnergy, Config, ConfigError, FeatureNetwork, InferenceNet, LabelSet, Proposal, Task, X


class SequenceConfig(Config):
    """Settings of the net `sequence`."""

    order: Literal["frequent", "none"] = "frequent"
    """Labels are written in this order, the frequent ones of the training part first, so that each set has one
    sequence; or in any order, which the trainer `decoders.ocd` learns."""
    dim: int = Field(128, ge=1)
    """Width of the LSTM and of attention."""
    embedding: int = Field(64, ge=1)
    """Width of the embeddings of labels."""
    global_temperature: float | None = Field(None, gt=0)
    """Adds the mean embedding under the last step's distribution, at this temperature, to that of the last label, by a
    gate (SGM: Yang et al. 2018, whose released code has 0.1); null: none."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of labels' embeddings and of the output; one mask for all steps of an example."""
    beam: int = Field(8, ge=1)
    """Width of beam search for the most probable set; 1 is greedy."""
    samples: int = Field(64, ge=1)
    """Number of sequences whose mean gives the probabilities of labels."""
    predicts: Literal["task", "mode"] = "task"
    """Decision: the task's, by a threshold or by expected F1, or the set of beam search, as published."""


MORE = 2
"""Number of labels beyond the largest set in training after which a sequence in no order is cut."""


def find_most(space: LabelSet) -> int | None:
    """Maximal number of labels of a sequence in no order; None if the largest set in training is unknown, or has nearly
    all."""
    return None if space.largest is None or space.largest + MORE > len(space.labels) else space.largest + MORE


class SequenceNet(InferenceNet):
    """q(y | x) of label sets that an LSTM writes one label at a time, with attention over words, to an end (Nam et al.
    2017). Written labels, and, with an order, all before them, can't follow.

    The words are those of a feature network that reads them, `decoders.words`; the vector of a network with one vector
    for x, such as `mlp` and `ngrams`, counts as a text of one word.
    """

    uses_features = True
    Config = SequenceConfig

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, LabelSet):
            raise ConfigError(
                f"inference_net 'decoders.sequence' requires label sets as outputs; found {type(task.space).__name__}"
            )
        self.writer = Writer(len(task.space.labels), features.output_dim, config)
        self.register_buffer("order", order_by_frequency(task))
        self.chooses = config.predicts == "mode"

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        memory = self.writer.remember(*read_words(self.features, x))
        first = self.writer.begin(memory).scores[..., :-1]
        kind, steps = LabelSequences, None
        if self.config.order == "none":
            kind, steps = FreeSequences, find_most(self.space)
        proposal = kind(
            self.space,
            first[..., self.order.argsort()],
            writer=self.writer,
            memory=memory,
            order=self.order,
            beam=self.config.beam,
            samples=self.config.samples,
            steps=steps,
        )
        return replace(proposal, chosen=proposal.mode) if self.chooses and not self.training else proposal
