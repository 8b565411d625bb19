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
        help="A spaCy pipeline, by name (spen_en) or folder, or the folder of a run of tags, roles, texts or trees.",
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
        help="Output folder; an unfinished job there is resumed. With --to jsonl, - prints to standard output.",
    ),
]
To = Annotated[
    Literal["parquet", "jsonl", "docbin"],
    typer.Option(
        help="parquet: one row per document, annotations as columns; jsonl: the same as JSON lines; docbin: spaCy docs."
    ),
]
From = Annotated[
    Literal["text", "jsonl", "json", "csv", "parquet", "docbin"] | None,
    typer.Option("--from", show_default=False, help="Format of the input (default: by file name)."),
]
Documents = Annotated[
    Literal["line", "file"], typer.Option(help="For text: one document per non-blank line, or per file.")
]
Text = Annotated[
    str,
    typer.Option(metavar="FIELD", help="For JSON, CSV and Parquet: the field with the text."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        show_default=False,
        help="Annotations to write as columns, separated by commas (default: all that the pipeline sets).",
    ),
]
Errors = Annotated[
    Literal["stop", "keep"],
    typer.Option(
        help="stop: end the job at the first document that fails; keep: write its row without annotations, with the "
        "reason in the column error."
    ),
]
ShardSize = Annotated[
    float | None,
    typer.Option(
        metavar="MB",
        show_default=False,
        help="MB of text per shard; a killed process loses one shard (default: 1/64 of the input, from 0.07 to 4).",
    ),
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option(help="local: this machine; ray: Ray Data, on one machine or many.")
]
Processes = Annotated[
    int, typer.Option(min=1, help="Number of processes; each loads the pipeline. With Ray, on any of its machines.")
]
Gpus = Annotated[
    float | None, typer.Option(min=0, show_default=False, help="With Ray: GPUs per process; may be a fraction.")
]
Address = Annotated[
    str | None,
    typer.Option(
        show_default=False, help="With Ray: address of a running cluster, or auto (default: start Ray on this machine)."
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        show_default=False, help="Device of the pipeline: cpu, cuda, … (default: cuda with --gpus, else cpu)."
    ),
]
Precision = Annotated[
    Literal["no", "int8", "bf16"] | None,
    typer.Option(
        show_default=False,
        help="int8: pretrained encoders multiply in int8, and LSTMs in bfloat16 if the processor supports it, faster "
        "on processors with AVX512-VNNI; bf16: nets multiply in bfloat16, faster on processors with AMX or "
        "AVX512-BF16, and on GPUs; no: float32 (default: the pipeline's own precision).",
    ),
]
PredicatesRun = Annotated[
    str | None,
    typer.Option(
        "--predicates",
        metavar="RUN",
        show_default=False,
        help="For a run of roles: the run that finds predicates (default: that of the plugin spen-en).",
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        show_default=False,
        help="For a run: language code of spaCy's tokeniser (default: the run's task.language, or en).",
    ),
]
