"""Tiny runs on easy corpora, and pipelines made of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import spacy
from spacy.language import Language

from spen_plugins.config.evaluation import evaluate
from tests.loaded import trained

# On a busy machine an example may take long.
hypothesis.settings.register_profile(
    "busy",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("busy")

TEXT = (
    "The old farmer  told Anna Smith in Boston that they sent a letter.\n\nBob 😀 gave Acme Corp. the book, “quickly”. "
    "She said: 'I saw \x07 it!' Then the teacher moved to Paris "
)


SUBJECTS = ("Anna Smith", "Anna", "Bob", "the old farmer", "the girl", "they", "she", "the teacher", "I")
OBJECTS = ("Anna Smith", "Anna", "Bob", "a letter", "the book", "it", "that they", "Acme Corp.")
VERBS = ("told", "sent", "gave", "said", "saw", "moved")
PLACES = ("", "in Boston", "to Paris", "in Boston that they")
NAMES = {"Anna": "B-PER", "Smith": "I-PER", "Bob": "B-PER", "Acme": "B-ORG", "Corp.": "I-ORG"}
NAMES |= {"Boston": "B-LOC", "Paris": "B-LOC"}
POS = {"the": "DET", "a": "DET", "old": "ADJ", "in": "ADP", "to": "ADP", "that": "SCONJ", ".": "PUNCT"}
POS |= dict.fromkeys(("they", "she", "I", "it"), "PRON")
POS |= dict.fromkeys(VERBS, "VERB") | dict.fromkeys(NAMES, "PROPN")
TOPICS = {"family": "Anna", "farm": "farmer", "mail": "letter", "travel": "Boston", "trade": "Acme"}


def draw_sentence(rng: random.Random) -> list[tuple[str, str]]:
    """Draws a sentence of who did what to whom, and where: each word with its role."""
    pairs = []
    for role, words in (("ARG0", SUBJECTS), ("V", VERBS), ("ARG1", OBJECTS), ("ARGM-LOC", PLACES)):
        pairs += [(word, f"{'I' if i else 'B'}-{role}") for i, word in enumerate(rng.choice(words).split())]
    return [*pairs, (".", "O")]


def format_role_line(word: str, role: str, next_role: str) -> str:
    """Returns a line of a file of semantic roles, whose spans are in brackets."""
    opening = f"({role[2:]}" if role[0] == "B" else ""
    closing = ")" if role != "O" and next_role[0] != "I" else ""
    return f"{word}\t{word if role == 'B-V' else '-'}\t{opening}*{closing}"


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Files by kind and part, so easy that a net is sure of their words with any seed and on any processor."""
    out, rng = tmp_path_factory.mktemp("corpora"), random.Random(0)
    corpora: dict[str, dict[str, str]] = {}
    for part, size in (("train", 400), ("validation", 60), ("test", 60)):
        sentences = [draw_sentence(rng) for _ in range(size)]
        next_roles = [[role for _, role in pairs[1:]] + ["O"] for pairs in sentences]
        lines = {
            "pos": ["\n".join(f"{word}\t{POS.get(word, 'NOUN')}" for word, _ in pairs) + "\n" for pairs in sentences],
            "ner": ["\n".join(f"{word}\t{NAMES.get(word, 'O')}" for word, _ in pairs) + "\n" for pairs in sentences],
            "srl": [
                "\n".join(format_role_line(*pair, next_role) for pair, next_role in zip(pairs, successors, strict=True))
                + "\n"
                for pairs, successors in zip(sentences, next_roles, strict=True)
            ],
            "text": [
                " ".join(word for word, _ in pairs) + "\t" + ",".join(t for t, w in TOPICS.items() if w in dict(pairs))
                for pairs in sentences
            ],
        }
        for kind, blocks in lines.items():
            path = out / f"{kind}.{part}.{'tsv' if kind == 'text' else 'conll'}"
            path.write_text("\n".join(blocks) + "\n", encoding="utf-8")
            corpora.setdefault(kind, {})[part] = str(path)
    return corpora


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, corpora: dict[str, dict[str, str]]) -> dict[str, Path]:
    """Folders by name: ner (with an energy), pos, fine (tags like NOUN+NN), srl, predicates, text."""
    out = tmp_path_factory.mktemp("runs")

    def train(name: str, config: str, task: dict[str, str], **arguments: object) -> Path:
        values = {"method": "cross_entropy", "features.hidden": "16", "features.dropout": "0"}
        values |= {"trainer.net.lr": "0.02", "trainer.epochs": "2"}
        values |= {key.replace("__", "."): str(value) for key, value in arguments.items()}
        table = evaluate(config, values)
        table["task"] = {key: value for key, value in table["task"].items() if key != "corpus"} | task
        return trained(table, out / name)

    fine_path = out / "fine.conllu"
    rows = [("Anna", "PROPN", "NNP"), ("sleeps", "VERB", "VBZ"), (".", "PUNCT", ".")]
    lines = [f"{i}\t{word}\t_\t{upos}\t{xpos}\t_\t_\t_\t_\t_" for i, (word, upos, xpos) in enumerate(rows, 1)]
    fine_path.write_text(("\n".join(lines) + "\n\n") * 100)
    files = dict.fromkeys(("train", "validation", "test"), str(fine_path)) | {"tags": "upos+xpos"}
    small_batches = {"trainer__batch_size": 16}
    contrastive = {"method": "contrastive", "trainer__pretrain_epochs": 6, "trainer__epochs": 1}
    return {
        "ner": train("ner", "names", corpora["ner"], columns="{}", energy="chain", **small_batches, **contrastive),
        "pos": train("pos", "tags", corpora["pos"], **small_batches),
        "fine": train("fine", "tags", files, **small_batches),
        "srl": train("srl", "srl_seal", corpora["srl"], **small_batches),
        "predicates": train("predicates", "predicates", corpora["srl"] | {"format": "predicates"}, **small_batches),
        "text": train("text", "texts", corpora["text"], features__hidden="[16,16]", trainer__epochs=4, **small_batches),
    }


@pytest.fixture(scope="session")
def settings(runs: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Settings of each factory, in the order of a pipeline."""
    return {
        "spen_pos": {"model": str(runs["pos"])},
        "spen_ner": {"model": str(runs["ner"]), "energy": True},
        "spen_srl": {"model": str(runs["srl"]), "predicates_model": str(runs["predicates"])},
        "spen_multilabel": {"model": str(runs["text"])},
    }


@pytest.fixture(scope="session")
def nlp(settings: dict[str, dict[str, Any]]) -> Language:
    """A pipeline with all four components."""
    nlp = spacy.blank("en")
    for name, config in settings.items():
        nlp.add_pipe(name, config=config)
    return nlp


@pytest.fixture(scope="session")
def text() -> str:
    """A text with whitespace tokens, an emoji, a control character and several sentences."""
    return TEXT
