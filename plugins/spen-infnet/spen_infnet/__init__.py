"""Inference networks and the energies they minimise (Tu & Gimpel 2018; Tu, Pang & Gimpel 2020)."""

from __future__ import annotations

from spen_plugins import Classes, Functions, hookimpl


@hookimpl
def spen_energy() -> Classes:
    return {
        "tag_lm": "spen_infnet.tag_lm:TagLm",
        "word_tag_lm": "spen_infnet.tag_lm:WordTagLm",
        "skip_chain": "spen_infnet.high_order:SkipChain",
        "high_order": "spen_infnet.high_order:HighOrder",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {"tree_crf": "spen_infnet.parsing.tree_crf:TreeCrf"}


@hookimpl
def spen_energy_loss() -> Classes:
    return {
        "margin": "spen_infnet.objectives:Margin",
        "perceptron": "spen_infnet.objectives:Perceptron",
        "contrastive": "spen_infnet.objectives:Contrastive",
        "slack": "spen_infnet.objectives:Slack",
        "compound": "spen_infnet.objectives:Compound",
    }


@hookimpl
def spen_cost_net() -> Classes:
    return {
        "separated": "spen_infnet.cost_nets:Separated",
        "shared": "spen_infnet.cost_nets:Shared",
        "stacked": "spen_infnet.cost_nets:Stacked",
        "stacked_bilstm": "spen_infnet.cost_nets:StackedBiLstm",
    }


@hookimpl
def spen_task() -> Classes:
    return {"parsing": "spen_infnet.parsing.task:Parsing"}


@hookimpl
def spen_trainer() -> Classes:
    return {"joint": "spen_infnet.joint:Joint"}


@hookimpl
def spen_command() -> Functions:
    return {"cost_net": "spen_infnet.commands:cost_net"}


@hookimpl
def spen_figure() -> Functions:
    return {"game": "spen_infnet.game_plots:game"}
