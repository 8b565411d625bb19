"""`spen package`: finished runs as an installable spaCy pipeline; the plugin spen-spacy does the work."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from spen_plugins.cli.common import guarded
from spen_plugins.errors import PluginError

GROUP = "spen_commands"
"""Entry points of functions that do what a command says, where a plugin brings it: name of the command -> function."""


class Build(StrEnum):
    """What is built from the package's folder."""

    wheel = "wheel"
    sdist = "sdist"
    none = "none"


class Predicates(StrEnum):
    """Where role labellers get their predicates."""

    model = "model"
    verbs = "verbs"


Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        show_default=False,
        help="Run folders of the tasks tagging, srl and text; name=folder gives the component a name.",
    ),
]
Name = Annotated[str, typer.Option(metavar="NAME", show_default=False, help="The package's name, as in en_ner_mine.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where the package's folder, NAME-VERSION, is put.")]
Lang = Annotated[str, typer.Option(help="The language whose tokeniser of spaCy's is used, by its code.")]
VersionOption = Annotated[str, typer.Option("--version", help="The package's version.")]
Description = Annotated[str, typer.Option(show_default=False, help="One sentence on the package.")]
Author = Annotated[str, typer.Option(show_default=False, help="Who made it.")]
Licence = Annotated[str, typer.Option("--licence", "--license", show_default=False, help="The package's licence.")]
BuildOption = Annotated[Build, typer.Option(help="What is built from the folder, in its dist/.")]
Half = Annotated[bool, typer.Option(help="Write weights as 16-bit numbers: half the size.")]
KeepEnergy = Annotated[bool, typer.Option(help="Take the energies along, for energies and rerank at prediction.")]
PredicatesOption = Annotated[
    Predicates | None,
    typer.Option(
        show_default=False,
        help="Where a run of srl gets its predicates: model, a RUN that tags predicates (the default where there is "
        "one); verbs, spaCy's parts of speech.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a package of this name and version.")]


@guarded
def package(
    runs: Runs,
    name: Name,
    out: Out = Path("packages"),
    lang: Lang = "en",
    version: VersionOption = "0.0.0",
    description: Description = "",
    author: Author = "",
    licence: Licence = "",
    build: BuildOption = Build.wheel,
    half: Half = True,
    keep_energy: KeepEnergy = False,
    predicates: PredicatesOption = None,
    force: Force = False,
) -> None:
    """Make an installable spaCy pipeline from finished runs, with a card of its scores and the data's licences."""
    made = _function()(
        runs,
        name,
        out,
        lang=lang,
        version=version,
        description=description,
        author=author,
        licence=licence,
        build=build.value,
        half=half,
        keep_energy=keep_energy,
        predicates=None if predicates is None else predicates.value,
        force=force,
        note=lambda text: typer.echo(f"note: {text}", err=True),
    )
    typer.echo(str(made))


def _function() -> Callable[..., Any]:
    """What spen-spacy does for this command.

    Raises:
        PluginError: it is not installed, or can't be imported.
    """
    entries = list(metadata.entry_points(group=GROUP, name="package"))
    if not entries:
        raise PluginError(
            "`spen package` comes with the plugin spen-spacy, which is not installed: pip install spen-spacy"
        )
    try:
        return entries[0].load()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise PluginError(f"`spen package` could not be imported from {entries[0].value!r}: {said}") from error
