"""The plugin keeps the contracts of its parts."""

import pytest
import spen_morphs.energy
import spen_morphs.loss
import spen_morphs.net
import spen_morphs.trainer
from spen_morphs.commands import make_morphs
from spen_morphs.task import Words, cut

import spen_plugins as sp
from spen_plugins import testing


@pytest.fixture
def task(tmp_path):
    """A task with its files, and the features for it: the checks' own, which need no type in a config."""
    make_morphs(tmp_path)
    task = Words(Words.Config(**{part: str(tmp_path / f"{part}.jsonl") for part in sp.PARTS}))
    task.load()
    return task


def made(cls, task, features=True, **config):
    return cls(cls.Config(**config), task, testing.ToyFeatures(task) if features else None)


def test_the_task(task):
    testing.check_task(task, unlabelled=[task.parse({"word": "evler"})])
    testing.check_space(task.space)
    assert cut("evlerim", [0, 1, 0, 0, 1, 0, 1]) == ["ev", "ler", "im"]


def test_the_parts(task):
    net = made(spen_morphs.net.Windows, task)
    energy = made(spen_morphs.energy.Gaps, task)
    loss = made(spen_morphs.loss.Ranking, task, features=False)
    testing.check_inference_net(net, task)
    testing.check_energy(energy, task)
    testing.check_energy_loss(loss, energy, net, task)
    trainer = spen_morphs.trainer.WarmUp(spen_morphs.trainer.WarmUp.Config())
    testing.check_trainer(trainer, sp.Model(net, energy, loss), task)


def test_what_a_file_gets_wrong_is_said(task, tmp_path):
    (tmp_path / "train.jsonl").write_text('{"word": "evlerim", "morphs": ["ev", "lar", "im"]}\n', encoding="utf-8")
    with pytest.raises(sp.DataError, match=r"train.jsonl:1: found .* expected a word, and morphs that make it up"):
        task.load()
