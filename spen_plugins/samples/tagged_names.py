"""A grammar of sentences with named entities.

"Washington", "Florence" or "Marsh" may be a person, a place or part of an organisation's name, and one name in four
is invented: the context decides, sometimes at the other end of the sentence.
"""

from __future__ import annotations

import random
from typing import NamedTuple, TypeVar

from spen_plugins.readers.columns import TaggedSentence
from spen_plugins.samples import tagged_lexicon as lexicon
from spen_plugins.samples.made_up import coin

T = TypeVar("T")
UNKNOWN = 0.25
"""Probability that a name is invented."""


class Token(NamedTuple):
    """A word with its part of speech, chunk and tag."""

    word: str
    pos: str
    chunk: str = "O"
    tag: str = "O"


Tokens = list[Token]


class NameWriter:
    """Generator of sentences."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.forms = (
            *((self._reported, 3), (self._acts, 4), (self._match, 2), (self._scores, 1), (self._list, 2)),
            *((self._born, 2), (self._trade, 2), (self._office, 2), (self._dateline, 1), (self._nothing, 2)),
        )

    def sentence(self) -> TaggedSentence:
        first, *rest = self._pick_of(*self.forms)()
        tokens = [first._replace(word=first.word[0].upper() + first.word[1:]), *rest]
        words, pos, chunk, tags = zip(*tokens, strict=True)
        return TaggedSentence(words, tags, {"pos": pos, "chunk": chunk})

    def _chance(self, p: float) -> bool:
        return self.source.random() < p

    def _one(self, *choices: str) -> str:
        return self.source.choice(choices)

    # Names: lists of words

    def _name(self, known: tuple[str, ...]) -> str:
        return (
            coin(self.source, self.source.choice((1, 2))).capitalize() if self._chance(UNKNOWN) else self._one(*known)
        )

    def _person(self) -> Tokens:
        first, last = self._name(lexicon.FIRST), self._name(lexicon.LAST)
        kind = self.source.random()
        if kind < 0.2:
            # The title is not part of the name.
            return _noun_phrase(self._one(*lexicon.TITLES), last, tag="PER", skip=1)
        if kind < 0.65:
            middle = [f"{self.source.choice('ABCDEFGHJKLM')}."] if self._chance(0.15) else []
            return _noun_phrase(first, *middle, last, tag="PER")
        return _noun_phrase(last if kind < 0.9 else first, tag="PER")

    def _place(self) -> Tokens:
        place, kind = self._name(lexicon.PLACES), self.source.random()
        if kind < 0.12:
            return _noun_phrase(self._one(*lexicon.LAND), self._name((*lexicon.PLACES, *lexicon.LAST)), tag="LOC")
        if kind < 0.24:
            return _noun_phrase(self._name((*lexicon.LAST, *lexicon.PLACES)), self._one(*lexicon.WAYS), tag="LOC")
        return _noun_phrase(place, tag="LOC")

    def _organisation(self) -> Tokens:
        kind = self.source.random()
        if kind < 0.3:
            core = self._name((*lexicon.COMPANIES, *lexicon.LAST))
            end = self._one(*lexicon.COMPANY_ENDS).split() if self._chance(0.75) else []
            return _noun_phrase(core, *end, tag="ORG")
        if kind < 0.45:
            place = self._name(lexicon.PLACES)
            if self._chance(0.5):
                return _noun_phrase(self._one(*lexicon.INSTITUTIONS), "of", place, tag="ORG")
            return _noun_phrase(place, self._one(*lexicon.INSTITUTIONS), tag="ORG")
        if kind < 0.6:
            return _noun_phrase(
                self._name((*lexicon.FIRST, *lexicon.LAST)), self._one(*lexicon.INSTITUTIONS), tag="ORG"
            )
        if kind < 0.8:
            return self._club()
        return _noun_phrase("the", self._name(lexicon.PLACES), self._one(*lexicon.PAPERS), tag="ORG", skip=1)

    def _club(self) -> Tokens:
        """A club may be called by its town's name alone."""
        place = self._name(lexicon.PLACES)
        return _noun_phrase(place, *([self._one(*lexicon.CLUBS)] if self._chance(0.5) else []), tag="ORG")

    def _whoever(self) -> Tokens:
        return self._person() if self._chance(0.6) else self._organisation()

    # Sentences

    def _reported(self) -> Tokens:
        verb = self._one("said", "told", "reported", "announced")
        speaker = self._whoever()
        if verb == "told":
            return [*speaker, _verb("told"), *self._whoever(), *self._when(), _STOP]
        say = self._one("that prices would fall", "it was too late", "nothing had changed", "that the talks had ended")
        pos = {"that": "IN", "prices": "NNS", "would": "MD", "fall": "VB", "too": "RB", "late": "JJ", "nothing": "NN"}
        pos |= {"it": "PRP", "was": "VBD", "had": "VBD", "changed": "VBN", "the": "DT", "talks": "NNS", "ended": "VBN"}
        return [
            *speaker,
            _verb(verb),
            *(Token(w, pos[w], _chunk(w, pos[w])) for w in say.split()),
            *self._when(),
            _STOP,
        ]

    def _acts(self) -> Tokens:
        """Persons, places and organisations as subjects and objects of the same verbs."""
        target, verbs = self._pick_of(
            ((self._person, lexicon.ACTS), 3), ((self._organisation, lexicon.ACTS), 3), ((self._place, lexicon.GOES), 2)
        )
        return [*self._whoever(), _verb(self._one(*verbs)), *target(), *self._where(0.35), *self._when(), _STOP]

    def _match(self) -> Tokens:
        """A match: towns that play are clubs."""
        return [*self._club(), _verb(self._one(*lexicon.BEATS)), *self._club(), *self._where(0.4), *self._when(), _STOP]

    def _scores(self) -> Tokens:
        """A line of results: the number after it reveals a club."""
        tokens: Tokens = []
        for place in range(2):
            tokens += [*self._club(), Token(str(self.source.randrange(6)), "CD", "B-NP")]
            tokens += [Token(",", ",")] if place == 0 and self._chance(0.5) else []
        return tokens

    def _list(self) -> Tokens:
        """A list of names of one kind; the words before or after it reveal which."""
        kind, before = self._pick_of(
            ((self._person, ("the", "singers")), 2),
            ((self._place, ("trains", "to")), 2),
            ((self._organisation, ("the", "sponsors")), 1),
        )
        names = [kind() for _ in range(self.source.choice((2, 3, 3, 4)))]
        row = list(names[0])
        for i, name in enumerate(names[1:], 2):
            row += [Token("and", "CC") if i == len(names) else Token(",", ","), *name]
        if before == ("trains", "to"):
            head = [Token("trains", "NNS", "B-NP"), Token("to", "TO", "B-PP")]
            return [*head, *row, _verb("were"), Token("late", "JJ", "B-ADJP"), _STOP]
        if self._chance(0.5):
            return [*_noun_phrase(*before), Token(",", ","), *row, Token(",", ","), _verb("came"), *self._when(), _STOP]
        behind = {"singers": "sang", "sponsors": "merged"}[before[1]]
        return [*row, _verb(behind), *self._when(), _STOP]

    def _born(self) -> Tokens:
        where = self._place()
        verb = self._one("was born", "lives", "grew up", "died", "was arrested").split()
        chunks = [Token(w, "VBD" if i == 0 else "VBN", "I-VP" if i else "B-VP") for i, w in enumerate(verb)]
        return [*self._person(), *chunks, Token(self._one("in", "near"), "IN", "B-PP"), *where, *self._when(), _STOP]

    def _trade(self) -> Tokens:
        """ "Marsh shares", "Chad workers": a company before its possession."""
        thing = self._one(*lexicon.TRADES)
        owner = self._organisation() if self._chance(0.6) else self._club()
        head = [*owner, Token(thing, "NNS", "I-NP")]
        return [*head, _verb(self._one("rose", "fell", "returned")), *self._where(0.4), *self._when(), _STOP]

    def _office(self) -> Tokens:
        """A job, the organisation and the person."""
        job = Token(self._one(*lexicon.JOBS), "NN", "I-NP")
        owner = self._organisation() if self._chance(0.7) else self._place()
        people = [Token(self._one(*lexicon.PEOPLES), "JJ", "B-NP"), job] if self._chance(0.25) else [*owner, job]
        return [*people, *_inside(self._person()), _verb(self._one("resigned", "agreed", "won")), *self._when(), _STOP]

    def _dateline(self) -> Tokens:
        day = [Token(self._one(*lexicon.DAYS), "NNP", "B-NP"), Token(str(self.source.randrange(1, 29)), "CD", "I-NP")]
        return [*[token._replace(word=token.word.upper()) for token in self._place()], *day]

    def _nothing(self) -> Tokens:
        """A sentence with capitals but no name."""
        people = Token(self._one(*lexicon.PEOPLES), "JJ", "B-NP")
        thing = Token(self._one(*lexicon.TRADES), "NNS", "I-NP")
        return [people, thing, _verb(self._one("rose", "fell", "arrived")), *self._when(0.9), _STOP]

    def _pick_of(self, *choices: tuple[T, float]) -> T:
        """One of the values, drawn by weight."""
        values, weights = zip(*choices, strict=True)
        return self.source.choices(values, weights)[0]

    def _where(self, p: float) -> Tokens:
        return [Token("in", "IN", "B-PP"), *self._place()] if self._chance(p) else []

    def _when(self, p: float = 0.35) -> Tokens:
        if not self._chance(p):
            return []
        day = self._one(*lexicon.DAYS)
        return [Token("on" if day.endswith("day") else "in", "IN", "B-PP"), Token(day, "NNP", "B-NP")]


_STOP = Token(".", ".")
_POS = {"the": "DT", "of": "IN", "&": "CC", "singers": "NNS", "sponsors": "NNS"}


def _noun_phrase(*words: str, tag: str = "", skip: int = 0) -> Tokens:
    """A chunk; all but the first `skip` words are a name of the kind `tag`."""
    tokens = []
    for i, word in enumerate(words):
        name = "" if not tag or i < skip else f"I-{tag}" if i > skip else f"B-{tag}"
        chunk = "B-PP" if word == "of" else "B-NP" if i == 0 or words[i - 1] == "of" else "I-NP"
        tokens.append(Token(word, _POS.get(word, "NNP"), chunk, name or "O"))
    return tokens


def _inside(tokens: Tokens) -> Tokens:
    """A name that continues the chunk before it."""
    return [tokens[0]._replace(chunk="I-NP"), *tokens[1:]]


def _verb(word: str) -> Token:
    return Token(word, "VBD", "B-VP")


def _chunk(word: str, pos: str) -> str:
    if pos in ("MD", "VBD"):
        return "B-VP"
    if pos in ("VB", "VBN"):
        return "I-VP"
    return {"IN": "B-SBAR", "NNS": "I-NP" if word == "talks" else "B-NP", "JJ": "I-ADJP", "RB": "B-ADJP"}.get(
        pos, "B-NP"
    )
