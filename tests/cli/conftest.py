"""Small runs of four tasks, shared by the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loaded import trained, written

ROLES = """\
Anna\t-\t(A0*)\t*
sent\tsend\t(V*)\t*
it\t-\t(A1*)\t(A1*)
burning\tburn\t*\t(V*)
.\t-\t*\t*

Yes\t-
!\t-

"""
NAMES = "Anna\tB-PER\nlives\tO\nin\tO\nNew\tB-LOC\nYork\tI-LOC\n.\tO\n\n"
POS = "1\tAnna\t_\tPROPN\tNNP\t_\t_\t_\t_\t_\n2\tlives\t_\tVERB\tVBZ\t_\t_\t_\t_\t_\n\n"
TEXTS = "the match, at last\tsport,news\nthe band\tmusic\nnothing\t\n"
SMALL = {"trainer.epochs": "1", "trainer.epoch_updates": "1", "method": "cross_entropy"}
BILSTM = {"features.hidden": "8", "features.word_dim": "8"}


def train(config: str, folder: Path, text: str, **arguments: str) -> Path:
    file = written(folder / f"{config}.txt", text * 8)
    return trained(config, folder / config, data=file, validation=file, **SMALL, **arguments)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "srl": train("srl_seal", folder, ROLES, **BILSTM),
        "ner": train("names", folder, NAMES, **BILSTM),
        "predicates": train("predicates", folder, ROLES, **BILSTM),
        "text": train("texts", folder, TEXTS, **{"features.buckets": "16", "features.hidden": "[8]"}),
    }
