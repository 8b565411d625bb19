"""The component of each run of a package, with errors before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spen_plugins import ConfigError, ReadsDocs, Registry, RunError, RunFolder
from spen_spacy.frame import TASK
from spen_spacy.parsing.component import TASK as PARSING

PREDICATES, SENSES = "predicates", "senses"
ORDER = ("spen_pos", "spen_ner", "spen_parser", "spen_srl", "spen_multilabel", "spen_task")
"""Factories in the order of a pipeline: role labellers may need parts of speech."""


@dataclass(frozen=True)
class Part:
    """One component of the pipeline, with the name of its spaCy factory and the runs of its models."""

    name: str
    factory: str
    run: RunFolder
    predicates_run: RunFolder | None = None
    """For a role labeller, the run that tags its predicates; None for verbs."""
    senses_run: RunFolder | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Config for `nlp.add_pipe`."""
        config = {"model": str(self.run.path)}
        if self.factory != "spen_srl":
            return config
        if self.senses_run is not None:
            config["senses_model"] = str(self.senses_run.path)
        if self.predicates_run is None:
            return config | {"predicates": "verbs"}
        return config | {"predicates": "model", "predicates_model": str(self.predicates_run.path)}

    @property
    def runs(self) -> dict[str, RunFolder]:
        """The component's runs, by the name of their folder below the component's."""
        others = {PREDICATES: self.predicates_run, SENSES: self.senses_run}
        return {"model": self.run} | {part: run for part, run in others.items() if run is not None}


def choose_components(words: Sequence[str], predicates: str | None = None) -> list[Part]:
    """The components of a pipeline, in order.

    Words are run folders; `name=folder` names the component, which otherwise has its factory's name. Predicates of role
    labellers are of "verbs", or of a "model", which is the default and needs a run. `ConfigError` if a folder is not a
    run folder, a task has no component, two components have the same name, or predicates are missing or unused;
    `RunError` if a run has no weights.
    """
    components: dict[str, Part] = {}
    others: dict[str, list[RunFolder]] = {PREDICATES: [], SENSES: []}
    for word in words:
        name, run = _read(word)
        kind = choose_factory(run)
        if kind in others:
            others[kind].append(run)
            continue
        name = name or kind
        if name in components:
            raise ConfigError(
                f"{components[name].run.path} and {run.path} would both be the component {name!r}; "
                f"give one of them another name, as in other_{kind.removeprefix('spen_')}={run.path}"
            )
        components[name] = Part(name, kind, run)
    factories = {component.factory for component in components.values()}
    if predicates and "spen_srl" not in factories:
        raise ConfigError("--predicates: there are no roles to label; give a run of task srl, too")
    tagger, senses = (_choose_one(runs, factories) for runs in others.values())
    if "spen_srl" in factories:
        _check_predicates(tagger, predicates, factories)
    for name, component in components.items():
        if component.factory == "spen_srl":
            components[name] = Part(name, "spen_srl", component.run, tagger, senses)
    return sorted(components.values(), key=lambda component: ORDER.index(component.factory))


def _read(word: str) -> tuple[str, RunFolder]:
    """`name=folder` or a folder -> the name ("" if not given) and the run."""
    name, _, path = ("", "", word) if Path(word).exists() else word.rpartition("=")
    run = RunFolder.open(Path(path), mean=True)
    if not (run.path / "weights.safetensors").exists():
        raise RunError(f"{path} has no weights yet (weights.safetensors is missing); let the run finish an epoch")
    return name, run


def choose_factory(run: RunFolder) -> str:
    """The factory of a run's component; `PREDICATES` for a predicate tagger, `SENSES` for a run of senses."""
    task = run.config()["task"]
    kind = str(task.get("type", "")).removeprefix("core.")
    if kind == "tagging":
        if PREDICATES in (task.get("format"), task.get("corpus")):
            return PREDICATES
        return "spen_pos" if task.get("scheme", "none") == "none" else "spen_ner"
    factories = {"srl": "spen_srl", TASK: SENSES, "text": "spen_multilabel", PARSING: "spen_parser"}
    if kind not in factories and issubclass(Registry().resolve("task", kind), ReadsDocs):
        return "spen_task"
    if kind not in factories:
        raise ConfigError(
            f"{run.path} is a run of task {kind!r}, which has no component in spaCy; expected a task of "
            f"tagging, srl, {TASK}, text or {PARSING}, or a plugin's whose class inherits from sp.ReadsDocs"
        )
    return factories[kind]


def choose_language(runs: Iterable[RunFolder]) -> str:
    """Language code of the tokeniser that divided the runs' texts: the first one besides en, the default."""
    languages = [run.config()["task"].get("language", "en") for run in runs]
    return next((language for language in languages if language != "en"), "en")


def _choose_one(runs: Sequence[RunFolder], factories: Collection[str]) -> RunFolder | None:
    """The run of this kind for a role labeller, if there is one."""
    paths = " and ".join(str(run.path) for run in runs)
    if runs and "spen_srl" not in factories:
        raise ConfigError(f"{paths}: there are no roles to label; give a run of task srl, too")
    if len(runs) > 1:
        raise ConfigError(f"found {paths}, which have the same use for roles; give only one")
    return runs[0] if runs else None


def _check_predicates(tagger: RunFolder | None, predicates: str | None, factories: Collection[str]) -> None:
    """Raises a `ConfigError` unless the role labellers have one source of predicates."""
    if predicates == "verbs" and tagger is not None:
        raise ConfigError(f"--predicates verbs: {tagger.path} would not be used; omit one of the two")
    if predicates == "verbs" and "spen_pos" not in factories:
        raise ConfigError("--predicates verbs requires parts of speech; add a run that tags them (tags=upos)")
    if predicates != "verbs" and tagger is None:
        raise ConfigError(
            "found a run of roles, but none that finds their predicates; add a run of task tagging with format: "
            "predicates (or corpus: predicates), or use --predicates verbs and a run of parts of speech"
        )
