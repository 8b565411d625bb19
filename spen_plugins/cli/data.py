"""`spen data`: data sets by name, splits of a user's own file, and columns of predicted tags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import check_kept, columns, make_app, read_columns, say, writable_file

app = make_app()

Name = Annotated[str, typer.Argument(help="Name of a data set, as listed by `spen data list`.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Accept the licence without asking.")]
File = Annotated[
    Path,
    typer.Argument(
        help="A file of label sets, texts, tags or roles, in any format, or a folder of *gold_conll files.",
        show_default=False,
    ),
]
Out = Annotated[Path | None, typer.Option(callback=writable_file, help="The split file (default: next to FILE).")]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal splits.")]
Keys = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        show_default=False,
        help="Columns and encoding of the file, as for spen-run: text=, labels= (a column, a,b, tag_* or a file of "
        "label names), label_count= (how many of the last columns are labels), separator=, drop=; for tagged words "
        "words=, tags=, scheme=; encoding=.",
    ),
]

Tagger = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of a tagger.", show_default=False)]
Columns = Annotated[str, typer.Argument(metavar="FILE", help="A column file, or its data: path.", show_default=False)]
Tagged = Annotated[
    Path,
    typer.Argument(metavar="OUT", callback=writable_file, help="The file to write.", show_default=False),
]
WordsColumn = Annotated[
    int | None,
    typer.Option(
        "--words",
        help="Column of the words, from 0; negative from the end (default: as in the run's files, or the first).",
        show_default=False,
    ),
]
TagsColumn = Annotated[
    int | None,
    typer.Option(
        "--tags",
        help="Column of the file's own tags, likewise (default: as in the run's files, or the last).",
        show_default=False,
    ),
]


@app.callback(no_args_is_help=True)
def data() -> None:
    """Fetch data sets, split your own files, add predicted tags to them.

    Example: spen data get bibtex
    """


@app.command()
def get(name: Name, yes: Yes = False) -> None:
    """Download a data set from its origin, check it, and store it in the data cache."""
    from spen_plugins.data import download

    folder = download.get(
        name,
        yes,
        lambda question: typer.confirm(question, err=True),
        say=lambda sentence: say(f"{sentence}; waiting"),
    )
    typer.echo(str(folder))


@app.command("list")
def list_data() -> None:
    """List the data sets, their licences, and how to get those that can't be downloaded."""
    from spen_plugins.data.catalogue import CATALOGUE

    entries = CATALOGUE.values()
    for entry, line in zip(entries, columns([[e.name, e.about] for e in entries]), strict=True):
        typer.echo(line)
        typer.echo(f"    licence: {entry.licence}")
        if entry.why_not is not None:
            typer.echo(f"    {entry.why_not}")


@app.command()
def split(file: File, keys: Keys = None, out: Out = None, seed: Seed = 0) -> None:
    """Split a file into training, validation and test rows, stratified by labels, tags or roles."""
    check_kept(out, file)
    from spen_plugins.data.parts.split import split_file

    with read_columns(keys) as columns:
        typer.echo(str(split_file(file, out, seed, say, **columns)))


@app.command()
def tag_columns(run: Tagger, file: Columns, out: Tagged, words: WordsColumn = None, tags: TagsColumn = None) -> None:
    """Add the tags predicted by a run to a column file, as a column right after the words; the other columns stay.

    Comments and -DOCSTART- lines are left out.
    """
    check_kept(out, file)
    from spen_plugins.data.catalogue import locate
    from spen_plugins.data.formats import read_head
    from spen_plugins.data.sentences.columns import insert_column, read_columns
    from spen_plugins.data.sentences.conllu_roles import is_conllu
    from spen_plugins.errors import DataError
    from spen_plugins.files import save_text
    from spen_plugins.runs.predict.predictor import load

    predictor, path = load(run), locate(file)
    run_columns = {name: getattr(predictor.task.config, name, None) for name in ("words", "tags")}
    settings = {
        "words": run_columns["words"] if words is None else words,
        "tags": run_columns["tags"] if tags is None else tags,
    }
    # Settings that are no numbers are fields of other formats.
    numbers = {name: column for name, column in settings.items() if isinstance(column, int)}
    if is_conllu(read_head(path)):
        command = f"spen predict {run} {file} --format conllu"
        raise DataError(path, None, "CoNLL-U", f"a file of columns; {command} writes tags into this one")
    try:
        sentences = read_columns(path, **numbers)
    except DataError as error:
        raise DataError(error.path, error.line, error.found, error.expected.replace("task.", "--")) from None
    predictions = predictor.predict([{"words": list(sentence.words)} for sentence in sentences])
    save_text(insert_column(path, numbers.get("words", 0), [prediction["tags"] for prediction in predictions]), out)
