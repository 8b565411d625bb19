"""The task: lines of words, batches of letters, and what is predicted."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

import spen_plugins as sp
from spen_morphs.space import Cuts


class Word(NamedTuple):
    """An example."""

    letters: str
    morphs: list[str] | None  # None: no gold


class Words(sp.FileTask, sp.ReadsDocs):
    """Words with their morphs, or alone, without gold."""

    def parse(self, item):
        """`{"word": "evlerim", "morphs": ["ev", "ler", "im"]}`, of which morphs are gold."""
        word = Word(item["word"], item.get("morphs"))
        if not word.letters or (word.morphs and "".join(word.morphs) != word.letters):
            raise sp.DataError("item", None, f"{item}", "a word, and morphs that make it up")
        return word

    def learn(self, examples):
        return {"letters": sorted({letter for word in examples for letter in word.letters})}

    def set_up(self, letters):
        self.space = Cuts()
        self.inputs = sp.WordInputs(words=["", "?", *letters], marks={})  # letters are the words of a word
        self.number = {letter: number for number, letter in enumerate(self.inputs.words)}

    def length(self, example):
        return len(example.letters)

    def collate(self, examples, rows=None):
        numbers = [torch.tensor([self.number.get(letter, 1) for letter in word.letters]) for word in examples]
        letters = pad_sequence(numbers, batch_first=True)  # 0 is padding, 1 an unknown letter
        gold = torch.zeros(len(examples), 1, letters.shape[1])
        for row, word in enumerate(examples):
            ends = torch.tensor([len(morph) for morph in word.morphs or ()], dtype=torch.long).cumsum(0)
            gold[row, 0, ends - 1] = 1
        inputs = {"words": letters, **self.index([list(word.letters) for word in examples])}
        return sp.Batch.of(inputs, letters > 0, gold, [word.morphs is not None for word in examples], rows)

    def read_doc(self, doc):
        return [{"word": token.text} for token in doc]  # in spaCy, each token is a word

    def predictions(self, proposal, batch, examples):
        y = self.decode(proposal, batch.x)[:, 0].bool().tolist()
        return [{"morphs": cut(word.letters, ends)} for word, ends in zip(examples, y, strict=True)]


def cut(letters, ends):
    """The morphs of a word, given whether one ends behind each letter; the last always ends."""
    places = [i for i, end in enumerate(ends[: len(letters) - 1], 1) if end]
    return [letters[start:end] for start, end in pairwise([0, *places, len(letters)])]
