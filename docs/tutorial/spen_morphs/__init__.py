"""Words cut into morphs."""

import spen_plugins as sp


@sp.hookimpl
def spen_command():
    return {"make_morphs": "spen_morphs.commands:make_morphs"}


@sp.hookimpl
def spen_task():
    return {"words": "spen_morphs.task:Words"}


@sp.hookimpl
def spen_inference_net():
    return {"windows": "spen_morphs.net:Windows"}


@sp.hookimpl
def spen_energy():
    return {"gaps": "spen_morphs.energy:Gaps"}


@sp.hookimpl
def spen_energy_loss():
    return {"ranking": "spen_morphs.loss:Ranking"}


@sp.hookimpl
def spen_trainer():
    return {"warm_up": "spen_morphs.trainer:WarmUp"}
