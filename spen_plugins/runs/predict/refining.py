"""Refined predictions: an inference net on top of the run's own net that decides by the energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spen_plugins.config.node import make, parse
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.loop.evaluation import evaluate
from spen_plugins.registry import Registry
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.task_parts import FitsDecoder

if TYPE_CHECKING:
    from spen_plugins.runs.predict.predictor import Predictor


def put_on_top(predictor: Predictor, registry: Registry, table: Mapping[str, Any]) -> None:
    """Put another inference net on top of the run's own, and store its settings in `refined`."""
    node = parse(registry, "inference_net", table, "refine", "--refine", predictor.experiment.features)
    if "net" not in node.cls.parts or not node.cls.uses_energy:
        raise ConfigError(
            f"--refine: {node.type!r} does not start from another inference net; expected 'rerank', 'reweight' or 'gbi'"
        )
    if "net" in node.parts:
        raise ConfigError("--refine: omit 'net'; it is the run's own inference net")
    if predictor.model.energy is None:
        raise ConfigError(
            f"--refine: {predictor.folder.path} was trained, or saved, without an energy; there is nothing to minimise"
        )
    settings = {"type": node.type, **node.config.model_dump(mode="json", exclude_none=True)}
    if node.cls.iterative and isinstance(predictor.task, FitsDecoder):
        threshold = predictor.task.use_threshold()
        settings |= {} if threshold is None else {"threshold": threshold}
    predictor.refined = {"refined": settings}
    predictor.model.inference_net = make(node, predictor.task, net=predictor.own_net)


def choose_on_validation(predictor: Predictor) -> dict[str, Any]:
    """Let the run's validation part choose among the inference net's `choices`; returns the chosen settings and how
    they were chosen."""
    net, task = predictor.model.inference_net, predictor.task
    choices = net.choices()
    advice = f"Give {' and '.join(choices[0])}"
    try:
        examples = load_own_data(predictor.experiment, predictor.folder, advice).part("validation")
    except (ConfigError, DataError) as error:
        example = ", ".join(f"{key} = {value:g}" for key, value in choices[0].items())
        raise ConfigError(
            f"--refine: the run's validation part can't be read to choose settings: {error}. {advice} yourself, such "
            f"as {example}"
        ) from error
    scores = []
    for choice in choices:
        net.choose(choice)
        metric = evaluate(predictor.model, task, examples, predictor.batch_size, predictor.device)
        scores.append(float(metric.compute()[task.selection]))
    best = choices[scores.index(max(scores))]
    net.choose(best)
    return {**best, "chosen": "picked on validation"}
