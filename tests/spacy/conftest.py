"""Tiny runs on the embedded corpora, and pipelines made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language

from spen_plugins.config.evaluation import evaluate
from spen_plugins.runs.runner import run

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (
    "The old farmer  told Anna Smith in Boston that they sent a letter.\n\nBob 😀 gave Acme Corp. the book, “quickly”. "
    "She said: 'I saw \x07 it!' Then the teacher moved to Paris "
)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders by name: ner (with an energy), pos, fine (tags like NOUN+NN), srl, predicates, text."""
    out = tmp_path_factory.mktemp("runs")

    def trained(name: str, config: str, **arguments: object) -> Path:
        values = {"dropout": "0", "hidden": "16", "net_lr": "0.02", "epochs": "2", "method": "cross_entropy"}
        values |= {key.replace("__", "."): str(value) for key, value in arguments.items()}
        evaluated = evaluate(ROOT / f"configs/{config}.jsonnet", values)
        return run(evaluated, config, out=out / name, device="cpu", quiet=True)

    fine = out / "fine.conllu"
    rows = [("Anna", "PROPN", "NNP"), ("sleeps", "VERB", "VBZ"), (".", "PUNCT", ".")]
    lines = [f"{i}\t{word}\t_\t{upos}\t{xpos}\t_\t_\t_\t_\t_" for i, (word, upos, xpos) in enumerate(rows, 1)]
    fine.write_text("\n".join(lines) + "\n\n")
    files = {"data": fine, "validation": fine, "test": fine, "tags": "upos+xpos", "columns": "{}", "vectors": "none"}
    spans = {"task__corpus": "predicates", "task__columns": "{}", "task__encoding": "bio"}
    contrastive = {"method": "contrastive", "pretrain_epochs": 6, "epochs": 1}
    return {
        "ner": trained("ner", "ner_infnet", columns="{}", energy="chain", **contrastive),
        "pos": trained("pos", "pos_infnet"),
        "fine": trained("fine", "pos_infnet", **files),
        "srl": trained("srl", "srl_seal"),
        "predicates": trained("predicates", "ner_infnet", **spans),
        "text": trained("text", "text_seal", hidden="[16,16]", epochs=4),
    }


@pytest.fixture(scope="session")
def settings(runs: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """What each factory is given, in the order of a pipeline."""
    return {
        "spen_pos": {"model": str(runs["pos"])},
        "spen_ner": {"model": str(runs["ner"]), "energy": True},
        "spen_srl": {"model": str(runs["srl"]), "predicates_model": str(runs["predicates"])},
        "spen_multilabel": {"model": str(runs["text"])},
    }


@pytest.fixture(scope="session")
def nlp(settings: dict[str, dict[str, Any]]) -> Language:
    """All four components."""
    nlp = spacy.blank("en")
    for name, config in settings.items():
        nlp.add_pipe(name, config=config)
    return nlp


@pytest.fixture(scope="session")
def text() -> str:
    """With whitespace tokens, an emoji, a control character, several sentences."""
    return TEXT
