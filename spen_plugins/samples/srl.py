"""A synthetic corpus for semantic role labelling, written by a small grammar of frames.

Labels are in the style of PropBank. Subjects are agents, themes or recipients, depending on the verb's frame and voice;
arguments may be far from their verbs (relative clauses, control, conjoined verbs); each core role occurs once. Models
of the whole output therefore gain.
"""

from __future__ import annotations

from functools import cache

from spen_plugins.data.sentences.srl import Sentence, read_srl
from spen_plugins.samples import FOLDER, cut

SIZES = {"train": 800, "validation": 200, "test": 200}


def sample_corpus() -> dict[str, list[Sentence]]:
    """Sentences of `train`, `validation` and `test`; all sentences are distinct, within and across parts."""
    return cut(_sentences(), SIZES)


@cache
def _sentences() -> list[Sentence]:
    return read_srl(FOLDER / "roles.conll", "word-predicate")
