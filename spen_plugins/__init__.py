"""Structured prediction energy networks: train and use energies that score whole outputs.

    import spen_plugins as sp

    sp.train("labels", data="bibtex", out="runs/mine")
    sp.load("runs/mine").predict([...])

Plugins import this package, `spen_plugins.nn`, `spen_plugins.sentences`, `spen_plugins.figures` and, in tests,
`spen_plugins.testing`; docs/plugins.md lists their names.
Names are imported at first use, from the block `if TYPE_CHECKING:` below, so importing this package loads neither torch
nor transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

from spen_plugins.lazy import lazy_names

__version__ = "0.2.0"

hookimpl = pluggy.HookimplMarker("spen_plugins")
"""Marks a plugin's hook implementations."""

__getattr__, _NAMES = lazy_names(globals())
__all__ = ["__version__", "hookimpl", "lazy_names", *_NAMES]


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from spen_plugins.batch import ArcInputs, Batch, ChoiceInputs, ImageInputs, TextInputs, VectorInputs, WordInputs, X
    from spen_plugins.builtin.losses.basic import Dvn
    from spen_plugins.builtin.tasks.labels.text import TextLabels
    from spen_plugins.builtin.tasks.roles.srl import SemanticRoles
    from spen_plugins.builtin.tasks.tags.tagging import Tagging
    from spen_plugins.builtin.trainers.phases import (
        cost_net_phase,
        cross_entropy,
        energy_phase,
        energy_stage,
        frozen_except,
        loss_parts,
        net_stage,
        net_terms,
    )
    from spen_plugins.component import Component
    from spen_plugins.data.catalogue import DataSet, locate
    from spen_plugins.data.disk.shards import checksum
    from spen_plugins.data.parts.rules import (
        FIRED,
        VOTES,
        MarkedWords,
        NamesSenses,
        Rules,
        RulesConfig,
        TakesRules,
        require_rules,
    )
    from spen_plugins.data.records import read_json_lines
    from spen_plugins.data.text import opened, read_lines, sha256, shorten, split_lines
    from spen_plugins.energy import BoundEnergy, Energy
    from spen_plugins.energy_loss import EnergyLoss, Terms
    from spen_plugins.errors import ConfigError, DataError, PluginError, RunError, SpenError, did_you_mean
    from spen_plugins.features import FeatureNetwork
    from spen_plugins.file_task import ExactMatch, FileTask, PartsConfig
    from spen_plugins.files import writing, writing_folder
    from spen_plugins.files.lock import locked
    from spen_plugins.hookspecs import Classes, Functions
    from spen_plugins.inference.gbi import Gbi, gbi_score
    from spen_plugins.inference_net import CostNet, InferenceNet
    from spen_plugins.model import Model
    from spen_plugins.player import PlateauConfig, Player, Schedule
    from spen_plugins.registry import Registry
    from spen_plugins.runs.folder.folder import RunFolder
    from spen_plugins.runs.predict.predictor import Predictor, load
    from spen_plugins.runs.predict.tokenised import note_unspaced
    from spen_plugins.runs.train.training import train
    from spen_plugins.scores.calibration import Confidences, Decisions, LabelConfidences, TagConfidences
    from spen_plugins.settings.config import Config
    from spen_plugins.settings.facts import listed, number, numbers
    from spen_plugins.spaces import (
        BinaryGrid,
        DependentLabels,
        DependentTags,
        IndependentLabels,
        IndependentPixels,
        IndependentReals,
        IndependentTags,
        LabelSet,
        Mixture,
        OutputSpace,
        Proposal,
        RealGrid,
        Spans,
        SparseLabels,
        TagSequence,
    )
    from spen_plugins.task import PARTS, Indexer, Metric, Shown, Task, Writer
    from spen_plugins.task_parts import (
        Augments,
        Calibrated,
        FitsDecoder,
        ListsLabels,
        NamesColumns,
        PartlyLabelled,
        ReadsDocs,
        ReadsInputs,
        ReadsText,
        Rewards,
        SharesSentences,
        TakesExamples,
        TakesMatrices,
        WritesFormats,
    )
    from spen_plugins.trainer import Context, OneBatch, Phase, Stage, Trainer, TrainerConfig, Update
