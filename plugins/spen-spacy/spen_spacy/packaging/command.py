"""The command `spen package`. Heavy imports wait until it runs, so that its help is fast."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import typer

from spen_plugins import ConfigError

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        show_default=False,
        help="Run folders; NAME=FOLDER names the component.",
    ),
]
Name = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="The package's name, as in en_ner_mine; the language is prepended if missing.",
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder in which to create the package's folder, NAME-VERSION.")]
Lang = Annotated[
    str | None,
    typer.Option(
        show_default=False, help="Language code; selects spaCy's tokeniser (default: the runs' task.language, or en)."
    ),
]
VersionOption = Annotated[str, typer.Option("--version", help="The package's version.")]
Licence = Annotated[str, typer.Option(show_default=False, help="The package's licence.")]
Build = Annotated[
    Literal["wheel", "sdist", "none"], typer.Option(help="Distribution to build from the folder, in its dist/.")
]
Half = Annotated[bool, typer.Option(help="Store weights in 16 bits: half the size.")]
KeepEnergy = Annotated[bool, typer.Option(help="Include the energies, for the settings energy and rerank.")]
Predicates = Annotated[
    Literal["model", "verbs"] | None,
    typer.Option(
        show_default=False,
        help="Source of the predicates of a run of srl: model, a RUN that tags predicates (the default if there is "
        "one); verbs, spaCy's parts of speech.",
    ),
]


def package(
    runs: Runs,
    name: Name,
    out: Out = Path("packages"),
    lang: Lang = None,
    version: VersionOption = "0.0.0",
    licence: Licence = "",
    build: Build = "wheel",
    half: Half = True,
    keep_energy: KeepEnergy = False,
    predicates: Predicates = None,
) -> Path:
    """Make an installable spaCy pipeline from finished runs, with a card of its scores and the data's licences.

    Example: spen package runs/names runs/pos --name en_ner_mine
    """
    # Prints and returns the path of the wheel, the sdist or the folder. A bad name, runs that make no pipeline, a
    # package that exists already and a run that can't be loaded are errors before anything is written.
    from spen_spacy.packaging import package as packager
    from spen_spacy.packaging.runs import choose_components, choose_language

    components = choose_components(runs, predicates)
    folders = [run for component in components for run in component.runs.values()]
    lang = lang or choose_language(folders)
    full_name = packager.full_name(name, lang, _note)
    packager.check(lang, version)
    target = out / f"{full_name}-{version}"
    if target.exists():
        raise ConfigError(f"{target} exists already; nothing was written. Use another --version or --out, or remove it")
    for run in folders:
        if (language := choose_language([run])) not in ("en", lang):
            typer.echo(
                f"warning: {run.path} has task.language={language}, but the package's language is {lang}", err=True
            )
        if run.metrics() is None:
            _note(f"{run.path} has no metrics.json: the run has not finished, and the card will have no scores of it")
    entries = {"lang": lang, "name": full_name.removeprefix(f"{lang}_"), "version": version, "license": licence}
    nlp = packager.make_pipeline(components, lang)
    out.mkdir(parents=True, exist_ok=True)
    # Hidden, and on the disk of the result, which is renamed into place.
    with TemporaryDirectory(prefix=".package-", dir=out) as temporary:
        work = Path(temporary)
        packager.write_pipeline(nlp, components, entries, work / "pipeline", half, keep_energy)
        packager.make_package(work, full_name)
        folder = work / target.name
        # spaCy leaves this copy to setup.py; with it the folder works as a package without building.
        shutil.copy(folder / "meta.json", folder / full_name)
        distribution = packager.build(folder, build)
        folder.rename(target)
    result = target if distribution is None else target / "dist" / distribution
    typer.echo(str(result))
    return result


def _note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)
