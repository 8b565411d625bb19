"""The tool that leaves a genre of EWT PropBank out of training."""

from __future__ import annotations

import pytest

from spen_plugins.errors import SpenError
from tools.results.leave_genre import write_parts


def make_sentence(genre: str, word: str) -> str:
    return f"# sent_id = {genre}-x-0001\n0\t{word}\tNN\t*\t-\t-\t*"


def test_the_genre_is_only_in_the_test_file(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "srl/ewt_propbank"
    folder.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        text = "\n\n".join(make_sentence(genre, f"{part}-{genre}") for genre in ("email", "weblog", "email"))
        (folder / f"ewt-propbank-{part}.gold_conll").write_text(text + "\n\n", encoding="utf-8")
    monkeypatch.setenv("SPEN_DATA", str(tmp_path))
    write_parts("email", tmp_path / "out")
    for part, genre, number in (("train", "weblog", 1), ("dev", "weblog", 1), ("test", "email", 2)):
        text = (tmp_path / f"out/{part}.conll").read_text(encoding="utf-8")
        assert text == (make_sentence(genre, f"{part}-{genre}") + "\n\n") * number
    with pytest.raises(SpenError, match="train has email, weblog"):
        write_parts("poems", tmp_path / "none")
