"""Reuters-21578 in parts: the ModApte split, with a validation part held out of its training documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spen_plugins.data.parts.stratification import stratify
from spen_plugins.data.texts.reuters import Document, read_reuters, shared_topics
from spen_plugins.errors import DataError

FOLDS, SEED = 10, 0  # of the validation part
MOD_APTE = (
    "Reuters-21578, ModApte: {train} training (validation included) and {test} test documents; the {labels} topics "
    f"both have. Validation: the first of {FOLDS} folds of the training documents by iterative stratification "
    f"(Sechidis et al. 2011), seed {SEED}: {{validation}} documents"
)


def read_parts(folder: Path) -> tuple[list[str], dict[str, list[Document]], str]:
    """The topics that training and test part share, the documents of each part, and the split in a sentence.

    Raises:
        DataError: a file is broken, or the two parts share no topic.
    """
    documents = read_reuters(folder)
    labels = shared_topics(documents)
    if not labels:
        raise DataError(folder, None, "no topic that a training and a test document share", "the whole collection")
    train, test = ([d for d in documents if d.part == part] for part in ("train", "test"))
    gold = np.array([[label in document.topics for label in labels] for document in train])
    held_out = stratify(gold, FOLDS, SEED) == 0  # repeated documents too go anywhere: published scores are on this
    parts = {
        "train": [train[i] for i in np.flatnonzero(~held_out)],
        "validation": [train[i] for i in np.flatnonzero(held_out)],
        "test": test,
    }
    sizes = {"train": len(train), "test": len(test), "validation": int(held_out.sum()), "labels": len(labels)}
    return labels, parts, MOD_APTE.format(**sizes)
