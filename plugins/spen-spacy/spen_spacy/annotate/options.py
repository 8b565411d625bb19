"""The options of `spen annotate`, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

LARGEST_SHARD = 1024
"""MB of text; a piece of a text file of this size is read at once."""
PipelineOption = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        show_default=False,
        help="A spaCy pipeline, name (spen_en) or folder, or a run folder of the task tagging, srl or text.",
    ),
]
Input = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        show_default=False,
        help="Files, folders (all that lies below, in order of the names) or quoted patterns ('corpus/**/*.txt'): text "
        "in UTF-8 (.txt), JSON lines (.jsonl), JSON (.json), CSV (.csv, .tsv), these also compressed (.gz), Parquet "
        "(.parquet) or DocBin (.spacy).",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER",
        show_default=False,
        help="Folder of the shards; one that was begun is finished. With --to jsonl, - is standard output.",
    ),
]
To = Annotated[
    Literal["parquet", "jsonl", "docbin"],
    typer.Option(
        help="parquet: a row per document, annotations as columns; jsonl: the same as JSON lines; docbin: spaCy's docs."
    ),
]
From = Annotated[
    Literal["text", "jsonl", "json", "csv", "parquet", "docbin"] | None,
    typer.Option("--from", show_default=False, help="Format (default: as the names end)."),
]
Documents = Annotated[
    Literal["line", "file"], typer.Option(help="Of text: a document is a line that is not blank, or a file.")
]
Text = Annotated[
    str,
    typer.Option(metavar="FIELD", help="Of JSON, CSV and Parquet: the field of text."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        show_default=False,
        help="Annotations to write as columns, with commas between them (default: all that the pipeline sets).",
    ),
]
Errors = Annotated[
    Literal["stop", "keep"],
    typer.Option(
        help="stop: a document that fails is named and ends the job, which can go on later; keep: its row has no "
        "annotations, and the reason in the column error."
    ),
]
ShardSize = Annotated[
    float | None,
    typer.Option(
        metavar="MB",
        show_default=False,
        help="Text in a shard; a process that is killed loses one (default: a 64th of all, 0.07 to 4).",
    ),
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option(help="local: this machine; ray: Ray Data, on one machine or many.")
]
Processes = Annotated[int, typer.Option(min=1, help="Processes, each with a pipeline; of ray, on any of its machines.")]
Gpus = Annotated[float | None, typer.Option(min=0, show_default=False, help="Of ray: GPUs of each process.")]
Address = Annotated[
    str | None,
    typer.Option(show_default=False, help="Of ray: a running cluster, as in auto (default: Ray is started here)."),
]
Device = Annotated[
    str | None,
    typer.Option(show_default=False, help="Where it predicts: cpu, cuda, … (default: cuda with --gpus, else cpu)."),
]
PredicatesRun = Annotated[
    str | None,
    typer.Option(
        "--predicates",
        metavar="RUN",
        show_default=False,
        help="Of a run of srl: the run that finds the predicates (default: that of the plugin spen-en).",
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(show_default=False, help="Of a run: code of the language of the tokeniser (default: en)."),
]
