"""A plain CRF tagger (CRFsuite, averaged perceptron, hand-made features) on CoNLL-U: accuracy and words per second.

    pip install python-crfsuite
    SPEN_DATA=... python -m tools.bench.bench_crf_tagger \\
        data:pos/ewt/en_ewt-ud-train.conllu data:pos/ewt/en_ewt-ud-test.conllu

A reference for `bench_spacy.py --task tag`: words of the test file as they are, features computed in the timed
part, one thread, the process' own time, best of five passes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spen_plugins.data.catalogue import locate
from spen_plugins.data.sentences.conllu import read_conllu
from tools.errors import end_with_message


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="training file, or its data: path")
    parser.add_argument("test", help="file to tag and score")
    parser.add_argument("--tags", default="xpos", help="field that holds the tags (default: xpos)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds over the training file (default: 10)")
    options = parser.parse_args()
    import pycrfsuite

    train, test = (read_conllu(locate(path), tags=options.tags) for path in (options.train, options.test))
    trainer = pycrfsuite.Trainer(algorithm="ap", params={"max_iterations": options.rounds}, verbose=False)
    for sentence in train:
        trainer.append(features(sentence.words), sentence.tags)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        started = time.process_time()
        trainer.train(str(model))
        print(f"trained in {time.process_time() - started:.0f} s, {model.stat().st_size / 1e6:.1f} MB on disk")
        tagger = pycrfsuite.Tagger()
        tagger.open(str(model))
        words = sum(len(sentence.words) for sentence in test)
        seconds = []
        for _ in range(5):
            started = time.process_time()
            predicted = [tagger.tag(features(sentence.words)) for sentence in test]
            seconds.append(time.process_time() - started)
    correct = sum(a == b for tags, s in zip(predicted, test, strict=True) for a, b in zip(tags, s.tags, strict=True))
    print(f"accuracy {100 * correct / words:.2f}, {words / min(seconds):,.0f} words/s")


def features(words: Sequence[str]) -> list[list[str]]:
    """Features of each word: itself, its affixes and shape, and the words around it."""
    lower = ["<s>", "<s>", *(word.lower() for word in words), "</s>", "</s>"]
    rows = []
    for i, word in enumerate(words, 2):
        form = lower[i]
        row = ["bias", f"w={form}", f"shape={shape(word)}"]
        row += [f"pre{n}={form[:n]}" for n in (2, 3)] + [f"suf{n}={form[-n:]}" for n in (1, 2, 3, 4)]
        row += [f"{k}:{lower[i + k]}" for k in (-2, -1, 1, 2)] + [f"{k}:{lower[i + k][-3:]}" for k in (-1, 1)]
        row += [name for name, test in (("digit", str.isdigit), ("upper", str.isupper)) if any(map(test, word))]
        rows.append(row)
    return rows


def shape(word: str) -> str:
    """Letters as X and x, digits as d, of the first eight characters."""
    return "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word[:8])


if __name__ == "__main__":
    main()
