"""What ships in the core, registered through the same hooks as any plugin, under the plugin name `core`."""

from __future__ import annotations

from spen_plugins import hookimpl
from spen_plugins.hookspecs import Table


@hookimpl
def spen_task() -> Table:
    return {
        "multilabel": "spen_plugins.builtin.multilabel:MultiLabel",
        "srl": "spen_plugins.builtin.srl:SemanticRoles",
        "tagging": "spen_plugins.builtin.tagging:Tagging",
        "text": "spen_plugins.builtin.text:TextLabels",
    }


@hookimpl
def spen_feature_network() -> Table:
    return {
        "mlp": "spen_plugins.builtin.mlp:Mlp",
        "bilstm": "spen_plugins.builtin.bilstm:BiLstm",
        "encoder": "spen_plugins.builtin.encoder:Encoder",
        "ngrams": "spen_plugins.builtin.ngrams:Ngrams",
        "transformer": "spen_plugins.builtin.transformer:Transformer",
    }


@hookimpl
def spen_inference_net() -> Table:
    return {
        "independent": "spen_plugins.builtin.independent:Independent",
        "crf": "spen_plugins.builtin.crf:Crf",
        "gbi": "spen_plugins.gbi:Gbi",
        "rerank": "spen_plugins.builtin.rerank:Rerank",
    }


@hookimpl
def spen_energy() -> Table:
    return {
        "local": "spen_plugins.builtin.energies:Local",
        "linear_chain": "spen_plugins.builtin.energies:LinearChain",
        "sum": "spen_plugins.builtin.sum:Sum",
    }


@hookimpl
def spen_energy_loss() -> Table:
    return {
        "ssvm": "spen_plugins.builtin.ssvm:Ssvm",
        "dvn": "spen_plugins.builtin.dvn:Dvn",
    }


@hookimpl
def spen_trainer() -> Table:
    return {
        "cross_entropy": "spen_plugins.builtin.cross_entropy:CrossEntropy",
        "energy": "spen_plugins.builtin.energy_alone:EnergyAlone",
    }
