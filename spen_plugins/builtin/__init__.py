"""The core's components, registered through the same hooks as any plugin's, under the plugin name `core`."""

from __future__ import annotations

from spen_plugins import hookimpl
from spen_plugins.hookspecs import Classes, Functions


@hookimpl
def spen_task() -> Classes:
    return {
        "multilabel": "spen_plugins.builtin.tasks.labels.multilabel:MultiLabel",
        "srl": "spen_plugins.builtin.tasks.roles.srl:SemanticRoles",
        "tagging": "spen_plugins.builtin.tasks.tags.tagging:Tagging",
        "text": "spen_plugins.builtin.tasks.labels.text:TextLabels",
    }


@hookimpl
def spen_feature_network() -> Classes:
    return {
        "mlp": "spen_plugins.builtin.features.mlp:Mlp",
        "bilstm": "spen_plugins.builtin.features.bilstm:BiLstm",
        "encoder": "spen_plugins.builtin.features.bilstm:Encoder",
        "bag": "spen_plugins.builtin.features.ngrams:Bag",
        "ngrams": "spen_plugins.builtin.features.ngrams:Ngrams",
        "transformer": "spen_plugins.builtin.features.transformer:Transformer",
        "one_reading": "spen_plugins.builtin.features.one_reading:OneReading",
        "shared": "spen_plugins.builtin.features.shared:Shared",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {
        "independent": "spen_plugins.builtin.nets.basic:Independent",
        "choice": "spen_plugins.builtin.nets.basic:Choice",
        "crf": "spen_plugins.builtin.nets.crf:Crf",
        "mean": "spen_plugins.builtin.nets.basic:Mean",
        "gbi": "spen_plugins.inference.gbi:Gbi",
        "rerank": "spen_plugins.builtin.nets.choosers:Rerank",
        "reweight": "spen_plugins.builtin.nets.choosers:Reweight",
    }


@hookimpl
def spen_energy() -> Classes:
    return {
        "local": "spen_plugins.builtin.energies.basic:Local",
        "linear_chain": "spen_plugins.builtin.energies.basic:LinearChain",
        "mean": "spen_plugins.builtin.energies.basic:MeanOfRuns",
        "sum": "spen_plugins.builtin.energies.basic:Sum",
    }


@hookimpl
def spen_energy_loss() -> Classes:
    return {
        "ssvm": "spen_plugins.builtin.losses.basic:Ssvm",
        "dvn": "spen_plugins.builtin.losses.basic:Dvn",
        "likelihood": "spen_plugins.builtin.losses.basic:Likelihood",
    }


@hookimpl
def spen_trainer() -> Classes:
    return {
        "cross_entropy": "spen_plugins.builtin.trainers.basic:CrossEntropy",
        "energy": "spen_plugins.builtin.trainers.basic:EnergyAlone",
        "one_vs_rest": "spen_plugins.builtin.trainers.one_vs_rest:OneVsRest",
    }


@hookimpl
def spen_command() -> Functions:
    return {
        "predict": "spen_plugins.cli.runs:predict",
        "evaluate": "spen_plugins.cli.runs:evaluate",
        "score": "spen_plugins.cli.runs:score",
        "calibrate": "spen_plugins.cli.runs:calibrate",
        "decode": "spen_plugins.cli.decode:decode",
        "compare": "spen_plugins.cli.compare:compare",
        "report": "spen_plugins.cli.compare:report",
        "plot": "spen_plugins.cli.plot:app",
        "sweep": "spen_plugins.cli.many:sweep",
        "together": "spen_plugins.cli.many:together",
        "data": "spen_plugins.cli.data:app",
        "configs": "spen_plugins.cli.plugins:app",
        "plugins": "spen_plugins.cli.plugins:list_plugins",
        "describe": "spen_plugins.cli.plugins:describe",
    }


@hookimpl
def spen_figure() -> Functions:
    return {
        "training": "spen_plugins.cli.plot:training",
        "calibration": "spen_plugins.cli.plot:calibration",
    }
