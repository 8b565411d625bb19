"""SEAL: a structured energy network as the trainable loss of a feed-forward network (Lee et al. 2022)."""

from __future__ import annotations

from spen_plugins import Classes, Functions, hookimpl


@hookimpl
def spen_energy() -> Classes:
    return {
        "labels": "spen_seal.labels:Labels",
        "self_attention": "spen_seal.self_attention:SelfAttention",
    }


@hookimpl
def spen_energy_loss() -> Classes:
    return {
        "margin": "spen_seal.margin:Margin",
        "margin_compound": "spen_seal.margin:CompoundMargin",
        "regression": "spen_seal.regression:Regression",
        "regression_s": "spen_seal.regression:SampledRegression",
        "nce": "spen_seal.contrast:Nce",
        "ranking": "spen_seal.contrast:Ranking",
    }


@hookimpl
def spen_trainer() -> Classes:
    return {
        "dynamic": "spen_seal.dynamic:Dynamic",
        "static": "spen_seal.static:Static",
        "direct": "spen_seal.direct:Direct",
    }


@hookimpl
def spen_figure() -> Functions:
    return {"gradients": "spen_seal.coupling_figure:gradients"}
