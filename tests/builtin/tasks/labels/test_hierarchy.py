"""Hierarchies of labels: from a file, a table, and paths; the share of incoherent sets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from spen_plugins.builtin.tasks.labels.label_hierarchy import list_path_parents
from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import loaded

LABELS = loaded("multilabel", corpus="sample").space.labels


def test_a_file_or_a_table_defines_the_parents(tmp_path: Path) -> None:
    a, b, c = LABELS[:3]
    path = tmp_path / "parents"
    path.write_text(f"{b}\t{a}\n{c} {b}\n\n{c} {b}\n")
    for hierarchy in (str(path), {b: a, c: b}):
        task = loaded("multilabel", corpus="sample", hierarchy=hierarchy)
        assert task.space.forest.parents == [None, 0, 1, *[None] * (len(LABELS) - 3)]
        assert (str(path) in task.checksums()) == isinstance(hierarchy, str)
        batch = task.collate(task.part("test"))
        logits = torch.full(batch.gold.shape, -9.0)
        logits[:3, 0, 1] = 9
        metric = task.metric()
        metric.update(task.space.independent(logits), batch)
        assert metric.compute()["incoherent"] == 3 / len(batch)
        assert "without its parent" in task.protocol()["incoherent"]
        restored = MultiLabel(task.config)
        restored.restore(json.loads(json.dumps(task.facts())))
        assert restored.space.forest.parents == task.space.forest.parents
        assert restored.space.largest == task.space.largest == max(len(example.gold) for example in task.part("train"))
    plain = loaded("text", corpus="sample")
    assert plain.space.forest is None and "incoherent" not in plain.protocol()
    assert loaded("text", corpus="sample", hierarchy={b: a}).space.forest.parents[1] == 0


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{0} {1}\n{0} {2}", ConfigError, "'{0}' has two parents, '{1}' and '{2}'"),
        ("{0} {1}\n{1} {0}", ConfigError, "expected no label to be its own ancestor"),
        ("{0} {1} {2}", DataError, "a label and its parent, separated by a tab or a blank"),
        ("{0} {1}\n{0}x {1}", DataError, "parents:2: found label '{0}x'; expected one of the"),
        ("# comment", DataError, "labels; remove lines whose labels do not occur in the data."),
    ],
)
def test_an_invalid_hierarchy_is_rejected(text: str, error: type, message: str, tmp_path: Path) -> None:
    path = tmp_path / "parents"
    path.write_text(text.format(*LABELS))
    with pytest.raises(error, match=re.escape(message.format(*LABELS)).replace(r"parents:2:", r"parents.*2.*")):
        loaded("multilabel", corpus="sample", hierarchy=str(path))
    with pytest.raises(ConfigError, match=r"task\.hierarchy: found label 'x'"):
        loaded("multilabel", corpus="sample", hierarchy={"x": LABELS[0]})


def test_paths_contain_their_parents() -> None:
    assert list_path_parents(["root", "01", "01/02", "02", "01/02/05"]) == [None, 0, 1, 0, 2]
    assert list_path_parents(["01", "01/02"]) == [None, 0]
