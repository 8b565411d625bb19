"""Functions that make tasks, experiments, runs and files for tests, and call commands in this process."""

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
from spen_plugins.config.experiment import Built, build, parse_experiment
from spen_plugins.registry import Registry
from spen_plugins.runs.options import RunOptions

if TYPE_CHECKING:
    from spacy.language import Language

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""
QUIET = RunOptions("cpu", quiet=True)


def parsed(kind: str, name: str, **fields: object) -> tuple[type, sp.Config]:
    """Returns the class of a component, by its kind and type, and its config, as a run parses it."""
    return Registry().parse(kind, {"type": name, **fields}, kind, "test")


def loaded(name: str, **fields: object) -> sp.Task:
    """Returns a loaded task, by its type and the fields of its config."""
    cls, config = parsed("task", name, **fields)
    task = cls(config)
    task.load()
    return task


def in_memory(kind: str, parts: Mapping[str, Any], **fields: object) -> sp.Task:
    """Returns a task with these examples."""
    cls, config = parsed("task", kind, in_memory=True, **fields)
    task = cls(config)
    task.take(parts)
    return task


def experiment(config: str | Path | Mapping[str, Any], **arguments: str) -> dict[str, Any]:
    """Returns the table of a checked experiment; the config is a name in `configs`, a path or a table."""
    return parse_experiment(evaluate(config, arguments), config, Registry()).table()


def built(config: str | Path | Mapping[str, Any], **arguments: str) -> Built:
    """Returns the objects of an experiment; the config is as in `experiment`."""
    return build(parse_experiment(evaluate(config, arguments), config, Registry()))


def trained(config: str | Path | Mapping[str, Any], folder: Path, **arguments: str) -> Path:
    """Trains a run quietly on the CPU and returns its folder; the config is as in `experiment`."""
    from spen_plugins.runs.train.runner import run

    return run(evaluate(config, arguments), str(config), folder, QUIET)


def spen(*words: object, status: int = 0, **settings: Any) -> Result:
    """Calls the command `spen` and checks its exit status; settings are those of `CliRunner.invoke`."""
    from spen_plugins.cli.main import app

    return _call(app, words, status, settings)


def spen_run(*words: object, status: int = 0, **settings: Any) -> Result:
    """Calls the command `spen-run` in the same way."""
    from spen_plugins.cli.run import app

    return _call(app, words, status, settings)


def _call(app: Any, words: tuple[object, ...], status: int, settings: Mapping[str, Any]) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words], **{"env": {"COLUMNS": "200"}, **settings})
    assert result.exit_code == status, result.output
    return result


def piped(factory: str, **config: Any) -> Language:
    """Returns a blank spaCy pipeline with one component; its models may be paths."""
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={key: str(v) if isinstance(v, Path) else v for key, v in config.items()})
    return nlp


def small_bert(folder: Path, words: Iterable[str], *, lower: bool = True, **sizes: Any) -> str:
    """Saves a small BERT with these pieces and its tokeniser, and returns the folder; sizes go to `BertConfig`."""
    import pytest

    transformers = pytest.importorskip("transformers")
    folder.mkdir(exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    vocabulary = written(folder / "vocab.txt", "\n".join(pieces) + "\n")
    transformers.BertTokenizerFast(vocabulary, do_lower_case=lower).save_pretrained(folder)
    dimensions = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8} | sizes
    transformers.BertModel(transformers.BertConfig(vocab_size=len(pieces), **dimensions)).save_pretrained(folder)
    return str(folder)


def of_six_digits(number: str) -> float:
    """Parses a number of a JSON text and checks that it has at most six decimals."""
    assert round(float(number), 6) == float(number), number
    return float(number)


def written(path: Path, text: str) -> str:
    """Writes a file with this text and returns its path."""
    path.write_text(text, encoding="utf-8")
    return str(path)


def parquet_file(path: Path, columns: Mapping[str, Any]) -> Path:
    """Writes a Parquet file with these columns; skips the test if pyarrow is not installed."""
    import pytest

    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path)
    return path


def module_of(path: Path) -> ModuleType:
    """Loads a script that is in no package; as when it is run, it can import modules from its folder."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
