"""Makers of tasks, experiments, runs and files for tests; and the commands, called in this process."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from click.testing import Result
from typer.testing import CliRunner

import spen_plugins as sp
from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import Built, build, check
from spen_plugins.registry import Registry
from spen_plugins.runs.options import RunOptions

if TYPE_CHECKING:
    from spacy.language import Language

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""
QUIET = RunOptions("cpu", quiet=True)


def parsed(kind: str, name: str, **fields: object) -> tuple[type, sp.Config]:
    """A component's class, by its kind and type, and its config, as a run parses it."""
    return Registry().parse(kind, {"type": name, **fields}, kind, "test")


def loaded(name: str, **fields: object) -> sp.Task:
    """A task by its type and the fields of its config."""
    cls, config = parsed("task", name, **fields)
    task = cls(config)
    task.load()
    return task


def in_memory(kind: str, parts: Mapping[str, Any], **fields: object) -> sp.Task:
    """A task whose examples are given."""
    cls, config = parsed("task", kind, in_memory=True, **fields)
    task = cls(config)
    task.take(parts)
    return task


def experiment(config: str | Path | Mapping[str, Any], **arguments: str) -> dict[str, Any]:
    """The table of a checked experiment; the config is a name in `configs`, a path or a table."""
    return check(evaluate(config, arguments), config, Registry()).table()


def built(config: str | Path | Mapping[str, Any], **arguments: str) -> Built:
    """The objects of an experiment, by a config as of `experiment`."""
    return build(check(evaluate(config, arguments), config, Registry()))


def trained(config: str | Path | Mapping[str, Any], folder: Path, **arguments: str) -> Path:
    """The folder of a run, trained quietly on the CPU, by a config as of `experiment`."""
    from spen_plugins.runs.train.runner import run

    return run(evaluate(config, arguments), str(config), folder, QUIET)


def spen(*words: object, status: int = 0, **settings: Any) -> Result:
    """The command `spen`, which ends with this status; settings are those of `CliRunner.invoke`."""
    from spen_plugins.cli.main import app

    return _call(app, words, status, settings)


def spen_run(*words: object, status: int = 0, **settings: Any) -> Result:
    """The command `spen-run`, likewise."""
    from spen_plugins.cli.run import app

    return _call(app, words, status, settings)


def _call(app: Any, words: tuple[object, ...], status: int, settings: Mapping[str, Any]) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words], **{"env": {"COLUMNS": "200"}, **settings})
    assert done.exit_code == status, done.output
    return done


def piped(factory: str, **config: Any) -> Language:
    """A blank spaCy pipeline with one component; its models may be paths."""
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={key: str(v) if isinstance(v, Path) else v for key, v in config.items()})
    return nlp


def small_bert(folder: Path, words: Iterable[str], *, lower: bool = True, **sizes: Any) -> str:
    """The folder of a small BERT with these pieces, and of its tokeniser; sizes are those of its `BertConfig`."""
    import pytest

    transformers = pytest.importorskip("transformers")
    folder.mkdir(exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    vocabulary = written(folder / "vocab.txt", "\n".join(pieces) + "\n")
    transformers.BertTokenizerFast(vocabulary, do_lower_case=lower).save_pretrained(folder)
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8} | sizes
    transformers.BertModel(transformers.BertConfig(vocab_size=len(pieces), **small)).save_pretrained(folder)
    return str(folder)


def of_six_digits(number: str) -> float:
    """A number of a JSON text, which has six digits behind the point at most."""
    assert round(float(number), 6) == float(number), number
    return float(number)


def written(path: Path, text: str) -> str:
    """The path of a file with this text."""
    path.write_text(text, encoding="utf-8")
    return str(path)


def parquet_file(path: Path, columns: Mapping[str, Any]) -> Path:
    """A Parquet file with these columns; the test is skipped where pyarrow is not installed."""
    import pytest

    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path)
    return path


def module_of(path: Path) -> ModuleType:
    """The module of a script that is in no package; it finds those beside it, as when it is run."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
