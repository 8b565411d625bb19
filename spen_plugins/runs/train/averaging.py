"""The mean of several runs' distributions: of all runs, or of those that the validation part chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from spen_plugins.batch import Batch
from spen_plugins.config.experiment import Built, Experiment, parse_experiment
from spen_plugins.config.node import make
from spen_plugins.errors import ConfigError
from spen_plugins.files import save_text, to_json
from spen_plugins.inference_net import InferenceNet, check_alone
from spen_plugins.loop.order import evaluation_batches
from spen_plugins.loop.torch_modes import flush_denormals
from spen_plugins.model import Model
from spen_plugins.registry import Registry
from spen_plugins.runs.devices import make_accelerator
from spen_plugins.runs.folder.encoders import save_assets
from spen_plugins.runs.folder.environment import count_parameters
from spen_plugins.runs.folder.exporting import make_untrained
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.weights import copy_tensors, list_tensors, select_below
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.runs.train.decoding import INSTEAD, ON_CPU, check_decodes, open_finished, pick_known, save_scored
from spen_plugins.runs.train.teachers import name_runs
from spen_plugins.spaces import Proposal
from spen_plugins.spaces.mixture import average
from spen_plugins.task import FILES, Task
from spen_plugins.task_parts import FitsDecoder, fitted_facts, selection_score


@dataclass(frozen=True)
class Member:
    """A finished run whose inference net can be averaged."""

    name: str
    folder: RunFolder
    experiment: Experiment

    def make_net(self, task: Task) -> InferenceNet:
        """The run's inference net with its weights, in evaluation mode."""
        net = make(self.experiment.inference_net, task, self.folder.assets)
        copy_tensors(select_below("inference_net", self.folder.weights()), list_tensors(net), self.folder.path)
        return net.eval()

    @cached_property
    def seconds(self) -> float:
        """The run's training time."""
        return sum(record["seconds"] for record in self.folder.times())


def average_runs(
    runs: Sequence[Path],
    out: Path,
    settings: Mapping[str, Any] | None = None,
    choose: bool = False,
    options: RunOptions = ON_CPU,
) -> Path:
    """Write a run folder whose net is the mean of several runs' nets, with its scores.

    The decoder and the calibration are fitted to the validation part.

    Args:
        runs: finished runs of one task and the same data; the first run's task settings are used.
        out: the folder, new or empty.
        settings: values that replace the task's `decode`, `threshold`, `decode_temperature`, `selection` and
            `nonempty`, if it has them.
        choose: if true, only the runs that the validation part chooses are averaged; see `select`.
        options: device and output.

    Raises:
        ConfigError: a run is not finished, predicts by an energy, or has another task or other data.
    """
    RunFolder.check_free(out, INSTEAD)
    members = open_members(runs, settings)
    task = load_own_data(members[0].experiment, members[0].folder, "Train again")
    averaged_members = choose_members(members, task, options)[0] if choose else members
    return write_mean(averaged_members, members, task, out, options)


def open_members(runs: Sequence[Path], settings: Mapping[str, Any] | None = None) -> list[Member]:
    """The runs to average, checked as far as possible without their data; arguments as in `average_runs`."""
    registry = Registry()
    members = []
    for name, run in zip(name_runs(runs), runs, strict=True):
        folder = open_finished(run)
        config, source = folder.config(), str(folder.path / "config.json")
        experiment = parse_experiment(config, source, registry)
        # The command line's defaults don't apply to a task without a choice of decoders.
        if settings and (issubclass(experiment.task.cls, FitsDecoder) or {*settings.values()} != {"validation"}):
            check_decodes(run, experiment)
            decoder_settings = pick_known(experiment.task.cls.Config, settings, str(run))
            experiment = parse_experiment({**config, "task": {**config["task"], **decoder_settings}}, source, registry)
        check_alone(experiment.inference_net.cls, str(run))
        members.append(Member(name, folder, experiment))
    for other in members[1:]:
        _check_alike(members[0], other)
    return members


def _check_alike(first: Member, other: Member) -> None:
    """Raise a ConfigError unless two runs have the same task and data."""
    a, b = first.experiment.task, other.experiment.task
    differences = []
    if a.type != b.type:
        differences.append(f"task {a.type!r} and {b.type!r}")
    differences += [f"task.{key}" for key in FILES if getattr(a.config, key, None) != getattr(b.config, key, None)]
    facts, other_facts = first.folder.facts(), other.folder.facts()
    fitted_names = fitted_facts(a.cls(a.config)) | {
        "largest"
    }  # "largest" is that of training sets; earlier runs lack it
    differences += [
        name
        for name in sorted(facts.keys() | other_facts.keys())
        if facts.get(name) != other_facts.get(name) and name not in fitted_names
    ]
    checksums, other_checksums = (run.folder.environment().get("data_sha256", {}) for run in (first, other))
    differences += [name for name in checksums if other_checksums.get(name, checksums[name]) != checksums[name]]
    if differences:
        raise ConfigError(
            f"{first.folder.path} and {other.folder.path} can't be averaged, as they differ in "
            f"{', '.join(differences)}; expected runs of one task on the same data"
        )


def choose_members(members: Sequence[Member], task: Task, options: RunOptions) -> tuple[list[Member], list[float]]:
    """The runs that `select` chooses by the validation part, the best single run first; and the scores of the means of
    the first run, the first two, and so on."""
    examples = task.part("validation")
    size = members[0].experiment.trainer.config.evaluated_at_once
    rows = [indices.tolist() for indices in evaluation_batches([task.length(example) for example in examples], size)]
    device = make_accelerator("no", options.device).device
    proposals: list[list[Proposal]] = []
    for member in members:  # one after another, so that only one net is in memory
        net = member.make_net(task).to(device)
        batches = (task.collate([examples[i] for i in indices], indices).to(device) for indices in rows)
        proposals.append([_propose(net, batch) for batch in batches])
    batches = [task.collate([examples[i] for i in indices], indices).to(device) for indices in rows]

    def score(chosen: Sequence[int]) -> float:
        means = (average([proposals[i][n] for i in chosen]) for n in range(len(batches)))
        return selection_score(task, zip(means, batches, strict=True))

    chosen, scores = select(len(members), score)
    return [members[i] for i in chosen], scores


def _propose(net: InferenceNet, batch: Batch) -> Proposal:
    with torch.no_grad(), flush_denormals():
        return replace(net(batch.x).detach(), features=None, iterates=())


def select(count: int, score: Callable[[Sequence[int]], float]) -> tuple[list[int], list[float]]:
    """Greedy forward selection without replacement (Caruana et al. 2004, Sec. 2).

    The best single candidate comes first. Each step then adds the candidate with which the mean scores best, until none
    is left. The candidates up to the best score are chosen; among equal scores, the fewest.

    Args:
        count: number of candidates.
        score: returns the joint score of candidates, given by number; high is good.

    Returns:
        The chosen candidates in order, and the score after each of them.
    """
    order: list[int] = []
    scores: list[float] = []
    while len(order) < count:
        candidates = [i for i in range(count) if i not in order]
        values = [score([*order, i]) for i in candidates]
        scores.append(max(values))
        order.append(candidates[values.index(scores[-1])])
    n = scores.index(max(scores)) + 1
    return order[:n], scores[:n]


def write_mean(
    members: Sequence[Member], candidates: Sequence[Member], task: Task, out: Path, options: RunOptions = ON_CPU
) -> Path:
    """Write the run folder of the mean of some runs.

    Args:
        members: the runs that are averaged.
        candidates: all runs from which validation chose; equal to `members` if it did not choose.
        task: the task with its data.
        out, options: as in `average_runs`.
    """
    first = members[0]
    nets = {member.name: member.experiment.inference_net.table(with_features=True) for member in members}
    config = {
        "seed": first.experiment.seed,
        "task": candidates[0].experiment.task.table(),
        "inference_net": {"type": "mean", "nets": nets},
        "trainer": make_untrained(first.experiment),
    }
    experiment = parse_experiment(config, f"the mean of {len(members)} runs", Registry())
    net = experiment.inference_net.cls(
        experiment.inference_net.config, task, None, nets={member.name: member.make_net(task) for member in members}
    )
    components = Built(task, Model(net, None, None), experiment.trainer.cls(experiment.trainer.config))

    def fill(folder: RunFolder) -> None:
        record = {
            "runs": {member.name: str(member.folder.path) for member in members},
            "candidates": [str(member.folder.path) for member in candidates],
        }
        sizes = {"parameters": count_parameters(components.model), "mean": record}
        folder.write("environment.json", {**first.folder.environment(), **sizes})
        times = [record for member in candidates for record in member.folder.times()]
        save_text("".join(to_json(time) + "\n" for time in times), folder.path / "times.jsonl")
        save_assets(net, folder.path)

    tested = "test" in (first.folder.metrics() or {})
    return save_scored(out, experiment, components, tested, fill, options)
