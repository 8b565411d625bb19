"""Everyday sentences with frames annotated by hand, and paragraphs with names: format, and pipelines' scores."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy

from spen_propbank import rolesets
from tools.english import edited_names, everyday

FLOORS = {"spen_en": (0.8, 0.75), "spen_en_md": (0.9, 0.83)}
"""Minimum share of correct arguments per pipeline, for the first fifty sentences and for the last fifty."""


def test_there_are_a_hundred_sentences_with_frames_of_propbank() -> None:
    sentences, lexicon = everyday.read(), rolesets()
    assert len(sentences) == 100 and all(sentence.frames for sentence in sentences)
    assert len({sentence.kind for sentence in sentences}) == 18
    for frame in (frame for sentence in sentences for frame in sentence.frames):
        roles = {argument.role.removeprefix("R-") for argument in frame.arguments}
        assert {role for role in roles if not role.startswith("ARGM-")} <= set(lexicon[frame.sense].roles), frame


@pytest.mark.parametrize("line", ["love.01 [ARG0 We] [V love] it !", "love.01 [ARG0 I] love it !"])
def test_a_frame_of_other_words_or_without_a_predicate_is_rejected(line: str, tmp_path: Path) -> None:
    path = tmp_path / "sentences.txt"
    path.write_text(f"## chat\n\nI love it !\n{line}\n")
    with pytest.raises(ValueError):
        everyday.read(path)


@pytest.mark.parametrize("name", FLOORS)
def test_enough_arguments_are_right(name: str) -> None:
    nlp, sentences = spacy.load(name), everyday.read()
    for part, floor in zip((sentences[:50], sentences[50:]), FLOORS[name], strict=True):
        result = everyday.score(nlp, part)
        assert result.right + len(result.missed) == result.gold
        assert result.right / result.gold >= floor


def test_names_are_read_from_brackets(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("# ours\n\n## news\n\n[ORG Acme] hired [PER Anna Lee].\nNobody else.\n")
    first, second = edited_names.read(path)
    assert first == ("news", "Acme hired Anna Lee.", {(0, 4, "ORG"), (11, 19, "PER")})
    assert second == ("news", "Nobody else.", set())


def test_paragraphs_have_names_of_three_types() -> None:
    paragraphs = edited_names.read()
    assert len({paragraph.kind for paragraph in paragraphs}) == 6
    assert {label for paragraph in paragraphs for *_, label in paragraph.names} == {"PER", "ORG", "LOC"}
    assert not any(set(paragraph.text) & set("[]") for paragraph in paragraphs)


@pytest.mark.parametrize("line", ["[org Acme] grew.", "[ORG Acme grew.", "Acme] grew."])
def test_a_name_without_its_brackets_is_rejected(line: str, tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text(f"## news\n\n{line}\n")
    with pytest.raises(ValueError, match="expected names"):
        edited_names.read(path)
