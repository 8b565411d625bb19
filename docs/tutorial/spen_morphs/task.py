"""The task: files of words, batches of letters, and the score."""

from typing import NamedTuple

import torch

import spen_plugins as sp
from spen_morphs.space import Cuts


class Word(NamedTuple):
    """An example."""

    letters: str
    morphs: list[str] | None  # None: no gold


class Words(sp.Task):
    """Lines such as `evlerim<TAB>ev ler im`; a word alone has no gold."""

    selection = "accuracy"

    class Config(sp.Config):
        train: str
        """File to learn from."""
        validation: str
        """File that picks the best epoch."""
        test: str | None = None
        """File to report on."""

    def load(self):
        self.parts = {part: self.read(file) for part, file in self.files().items()}
        if any(word.morphs is None for word in self.parts["validation"]):
            raise sp.DataError(self.config.validation, None, "words without morphs", "morphs for every word")
        self.restore({"letters": sorted({letter for word in self.parts["train"] for letter in word.letters})})

    def files(self):
        return {part: file for part in sp.PARTS if (file := getattr(self.config, part))}

    def facts(self):
        return {"letters": self.inputs.words[2:]}

    def restore(self, facts):
        self.space = Cuts()
        self.inputs = sp.WordInputs(words=["", "?", *facts["letters"]], marks={})  # letters are the words of a word
        self.number = {letter: number for number, letter in enumerate(self.inputs.words)}

    def part(self, name):
        return self.parts.get(name, [])

    def read(self, path):
        found = []
        for number, line in enumerate(sp.locate(path).read_text(encoding="utf-8").splitlines(), 1):
            letters, _, morphs = line.partition("\t")
            word = Word(letters, morphs.split() or None)
            if not letters or (word.morphs and "".join(word.morphs) != letters):
                raise sp.DataError(
                    path, number, repr(line), "a word, and behind a tab its morphs: evlerim<TAB>ev ler im"
                )
            found.append(word)
        if not found:
            raise sp.DataError(path, None, "an empty file", "a word per line")
        return found

    def parse(self, item):
        """`"evlerim"`."""
        if not isinstance(item, str) or not item:
            raise sp.DataError("item", None, repr(item), "a word")
        return Word(item, None)

    def length(self, example):
        return len(example.letters)

    def collate(self, examples, rows=None):
        longest = max(len(word.letters) for word in examples)
        letters = torch.zeros(len(examples), longest, dtype=torch.long)  # 0 is padding
        gold = torch.zeros(len(examples), 1, longest)
        for row, word in enumerate(examples):
            numbers = [self.number.get(letter, 1) for letter in word.letters]  # 1 is unknown
            letters[row, : len(numbers)] = torch.tensor(numbers)
            end = 0
            for morph in word.morphs or ():
                end += len(morph)
                gold[row, 0, end - 1] = 1
        inputs = {"words": letters}
        for indexer in self.indexers.values():  # what the feature network wants of the letters besides
            inputs.update(indexer.collate([indexer.index(list(word.letters)) for word in examples]))
        labelled = torch.tensor([word.morphs is not None for word in examples])
        rows = range(len(examples)) if rows is None else rows
        return sp.Batch(
            sp.X(inputs, letters > 0, len(examples)),
            torch.tensor(list(rows)),
            gold if labelled.any() else None,
            labelled,
        )

    def predictions(self, proposal, batch, examples):
        y = self.decode(proposal, batch.x)[:, 0].bool().tolist()
        return [
            {"morphs": cut(word.letters, ends[: len(word.letters)])} for word, ends in zip(examples, y, strict=True)
        ]

    def show(self, example):
        return sp.Shown([example.letters], example.morphs)

    def metric(self):
        return RightWords(self)

    def protocol(self):
        return {"metric": "words with all morphs right / words", "split": "the files", "threshold": 0.5}

    def checksums(self):
        return {file: sp.sha256(sp.locate(file)) for file in self.files().values()}


class RightWords(sp.Metric):
    """The share of words of which every morph is right; rows without gold don't count."""

    def __init__(self, task):
        self.task, self.right = task, []

    def update(self, proposal, batch):
        if batch.gold is not None:
            same = (self.task.decode(proposal, batch.x) == batch.gold).all(-1)[:, 0]
            self.right.append(same[batch.labelled].float().cpu())

    def compute(self):
        right, seen = self.ratios()
        return {"accuracy": float(right.sum() / max(1, seen.sum()))}

    def ratios(self):
        right = torch.cat(self.right) if self.right else torch.zeros(0)
        return right, torch.ones_like(right)


def cut(letters, ends):
    """The morphs of a word, given whether one ends behind each letter; the last always ends."""
    found, start = [], 0
    for i, end in enumerate(ends, 1):
        if end or i == len(letters):
            found.append(letters[start:i])
            start = i
    return found
