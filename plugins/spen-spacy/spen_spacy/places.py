"""Folders of a component's models: run folders, saved components, installed plugins (hook `spen_model`)."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from spen_plugins import ConfigError, Registry, RunFolder

PARTS = ("model", "predicates", "senses")
"""Subfolders of a saved component."""
SETTINGS = {"model": "model", "predicates_model": "predicates", "senses_model": "senses"}
"""The settings that name models, with the part of each."""
CONFIGS = {
    "spen_ner": "names",
    "spen_pos": "tags",
    "spen_parser": "parsing",
    "spen_srl": "roles",
    "spen_multilabel": "texts",
    "spen_task": "my.jsonnet",
}
"""The config that trains a factory's run."""


def find_folders(name: str, factory: str, model: str | Path | None, setting: str) -> dict[str, Path]:
    """The folders of a component's models: `model`, and `predicates` and `senses` if they exist.

    `model` is a run folder, the folder of a saved component (~ is expanded), or the name of an installed model; None
    is the model that is installed under the factory's name. The component's name and the setting are for messages.
    `ConfigError` if there is none, `PluginError` if the package that provides it is broken.
    """
    folder = find_installed(name, factory) if model is None else Path(model).expanduser()
    if not folder.exists() and str(model) in Registry().providers("model"):
        folder = find_installed(name, str(model))
    if (folder / "model").is_dir():
        return {part: folder / part for part in PARTS if (folder / part).is_dir()}
    if (folder / "methods.json").exists():
        folder = RunFolder.open(folder, mean=True).path  # the chosen run, or the mean of several
    if not (folder / "config.json").exists():
        model_name = str(folder) if str(model) else ""
        raise ConfigError(
            f"{name}: found the {setting} {model_name!r}, {_describe_fault(model_name, factory)}. "
            f"{_suggest(factory, setting)}"
        )
    return {"model": folder}


def find_installed(name: str, factory: str) -> Path:
    """The folder of the installed model of this factory, or of this name; `ConfigError` if none is installed, or
    several are; `PluginError` if the package that provides it is broken."""
    registry = Registry()
    types = [f"{plugin}.{factory}" for plugin in registry.providers("model").get(factory, [])]
    if not types:
        broken = [f"\nnote: {plugin.error}" for plugin in registry.plugins() if plugin.error is not None]
        raise ConfigError(
            f"{name}: no model is named, and none is installed as {factory!r}. {_suggest(factory)}{''.join(broken)}"
        )
    if len(types) > 1:
        names = ", ".join(sorted(registry.plugin(type_).distribution for type_ in types))
        raise ConfigError(f"{name}: several packages provide a model ({names}); name one's folder as model")
    return Path(registry.resolve("model", types[0])())


def advise_training(factory: str) -> str:
    """The start of a sentence: the command that trains a run for the factory on a file."""
    return f"Train a run (spen-run {CONFIGS[factory]} data=FILE --out runs/mine)"


def _describe_fault(path: str, factory: str) -> str:
    """The fault of a place that holds no run."""
    if not path:
        return "an empty name"
    if Path(path).is_file():
        return "which is a file; give its folder"
    if Path(path).exists():
        return "which is not a run folder: it holds no config.json"
    if path not in entry_points(group="spacy_models").names:
        return "which does not exist"
    registry = Registry()
    plugins = registry.providers("model")
    packages = {name: registry.plugin(f"{plugins[name][0]}.{name}").distribution for name in _list_models(factory)}
    names = ", ".join(name for name, package in packages.items() if package.replace("-", "_") == path)
    return "which is a pipeline, not a model" + (f" (its own: {names})" if names else "")


def _list_models(factory: str) -> list[str]:
    """The names of the installed models of a factory."""
    others = tuple(other for other in CONFIGS if other != factory)
    return [name for name in sorted(Registry().providers("model")) if not name.startswith(others)]


def _suggest(factory: str, setting: str = "model") -> str:
    names = _list_models(factory)
    advice = (
        f"Name an installed one ({', '.join(names)}), or train one"
        if names
        else "Install one (spen-en has names, tags and roles), or train one"
    )
    config = CONFIGS[factory] if setting == "model" else SETTINGS[setting]
    return (
        f"{advice} (spen-run {config} --out runs/mine) and give its folder: "
        f'nlp.add_pipe("{factory}", config={{"{setting}": "runs/mine"}})'
    )
