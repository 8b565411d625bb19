"""A grammar of sentences with parts of speech.

Neighbours decide a word's part of speech: "plan", "open", "fast", "that", "her", "off", "can", "like" and "to" each
have two or three. Some words are invented, and most of those reveal their part of speech by a suffix.
"""

from __future__ import annotations

import random
from typing import TypeVar

from spen_plugins.readers.columns import TaggedSentence
from spen_plugins.samples import tagged_lexicon as lexicon
from spen_plugins.samples.made_up import coin

T = TypeVar("T")
Tokens = list[tuple[str, str]]
"""Words with their tags."""

UNKNOWN = 0.2
"""Probability that a noun, adjective, adverb or verb is invented."""
BARE = 0.3
"""Share of those without a revealing suffix."""


class PosWriter:
    """Generator of sentences."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def sentence(self) -> TaggedSentence:
        tokens = self._pick((self._statement, 7), (self._question, 1), (self._order, 2))()
        word, tag = tokens[0]
        words, tags = zip((word[0].upper() + word[1:], tag), *tokens[1:], strict=True)
        return TaggedSentence(words, tags)

    def _chance(self, p: float) -> bool:
        return self.source.random() < p

    def _pick(self, *choices: tuple[T, float]) -> T:
        """One of the values, drawn by weight."""
        values, weights = zip(*choices, strict=True)
        return self.source.choices(values, weights)[0]

    def _word(self, words: tuple[str, ...], tag: str, coined: bool = True) -> tuple[str, str]:
        if coined and tag in lexicon.ENDINGS and self._chance(UNKNOWN):
            ending = "" if self._chance(BARE) else self.source.choice(lexicon.ENDINGS[tag])
            return coin(self.source) + ending, tag
        return self.source.choice(words), tag

    # Sentences

    def _statement(self) -> Tokens:
        tokens: Tokens = []
        if self._chance(0.15):
            tokens += [self._word(lexicon.SUBORDINATORS, "SCONJ"), *self._clause(0), (",", "PUNCT")]
        tokens += self._clause(1)
        if self._chance(0.2):
            tokens += [self._word(("and", "but", "or"), "CCONJ"), *self._clause(0)]
        return [*tokens, (".", "PUNCT")]

    def _question(self) -> Tokens:
        """The modal comes first: "Will Will call?"."""
        return [self._word(lexicon.MODALS, "AUX"), *self._subject(), *self._base(0), ("?", "PUNCT")]

    def _order(self) -> Tokens:
        """A verb at the start, where a noun is possible, too."""
        first: Tokens = [("please", "ADV")] if self._chance(0.2) else []
        return [*first, *self._base(0), self._pick(((".", "PUNCT"), 5), (("!", "PUNCT"), 1))]

    # Clauses

    def _clause(self, depth: int) -> Tokens:
        """A subject and a predicate; nothing is nested below depth 0."""
        kinds = [(self._present, 3), (self._past, 3), (self._modal, 3), (self._is, 2), (self._moves, 2)]
        if depth > 0:
            kinds += [(self._says, 2), (self._perceives, 2), (self._wants, 3)]
        return self._pick(*kinds)()

    def _present(self) -> Tokens:
        """Plural subjects have bare verbs, others an -s, as plural nouns have."""
        if self._chance(0.5):
            subject, verb = self._plural(), self._word((*lexicon.BOTH, *lexicon.VERBS), "VERB")
        else:
            word, tag = self._word(lexicon.BOTH, "VERB", coined=False)
            subject, verb = self._singular(), (_with_s(word), tag)
        return [*subject, *self._adverb(0.15), verb, *self._object(), *self._place()]

    def _past(self) -> Tokens:
        return [*self._subject(), self._word(lexicon.PAST, "VERB", coined=False), *self._object(), *self._place()]

    def _modal(self) -> Tokens:
        modal = [self._word(lexicon.MODALS, "AUX")]
        return [*self._subject(), *modal, *([("not", "PART")] if self._chance(0.2) else []), *self._base(1)]

    def _is(self) -> Tokens:
        """ "Is" and "was" before adjectives, participles, or an -ing."""
        be = (self.source.choice(("is", "was")), "AUX")
        what = self._pick(
            ([self._word((*lexicon.ADJECTIVES, *lexicon.OPEN, *lexicon.FLAT), "ADJ")], 3),
            ([self._word(lexicon.PARTICIPLES, "VERB", coined=False), ("by", "ADP"), *self._noun_phrase()], 2),
            ([(f"{self.source.choice(lexicon.BOTH[:4])}ing", "VERB"), *self._place()], 1),
        )
        return [*self._singular(), be, *self._adverb(0.2), *what]

    def _moves(self) -> Tokens:
        """ "To" before a noun; "back", "down" and "up" are adverbs in front of it."""
        verb = self._word(lexicon.MOVES, "VERB", coined=False)
        away: Tokens = [self._word(("back", "down", "up", "over"), "ADV")] if self._chance(0.3) else []
        goal = [self._noun()] if self._chance(0.4) else self._noun_phrase()
        flat: Tokens = [self._word(lexicon.FLAT, "ADV", coined=False)] if self._chance(0.25) else []
        return [*self._subject(), verb, *flat, *away, ("to", "ADP"), *goal]

    def _wants(self) -> Tokens:
        """ "To" before a verb."""
        return [*self._plural(), self._word(lexicon.WANTS, "VERB", coined=False), ("to", "PART"), *self._base(1)]

    def _says(self) -> Tokens:
        """ "That" before a clause, before a noun, or alone."""
        verb = self._word(lexicon.SAYS, "VERB", coined=False)
        said = self._pick(([("that", "SCONJ"), *self._clause(0)], 3), ([("that", "PRON")], 1), (self._clause(0), 1))
        return [*self._plural(), verb, *said]

    def _perceives(self) -> Tokens:
        """ "Saw her walk": here "her" is not possessive."""
        seen = self._pick(([("her", "PRON")], 3), ([("them", "PRON")], 2), (self._noun_phrase(), 1))
        verb = self._word(lexicon.PERCEIVES, "VERB", coined=False)
        return [*self._subject(), verb, *seen, *self._base(0, short=True)]

    def _base(self, depth: int, short: bool = False) -> Tokens:
        """A bare verb and what follows it."""
        if not short and self._chance(0.25):
            verb, particle = self.source.choice(lexicon.PHRASAL)
            thing = self._noun_phrase()
            around = self._chance(0.5)
            middle: Tokens = [*thing, (particle, "PART")] if around else [(particle, "PART"), *thing]
            return [(verb, "VERB"), *middle]
        if depth > 0 and self._chance(0.1):
            return [("have", "AUX"), self._word(lexicon.PAST[4:], "VERB", coined=False), *self._object()]
        verb = self._word((*lexicon.BOTH, *lexicon.BOTH, *lexicon.VERBS, *lexicon.OPEN, "have", "like"), "VERB")
        if short:
            return [verb, *(self._place() if self._chance(0.5) else self._adverb(0.3))]
        flat: Tokens = [self._word(lexicon.FLAT, "ADV", coined=False)] if self._chance(0.15) else []
        return [verb, *self._object(), *flat, *self._place()]

    # Phrases

    def _subject(self) -> Tokens:
        return self._singular() if self._chance(0.6) else self._plural()

    def _singular(self) -> Tokens:
        return self._pick(
            ([self._word(("he", "she", "it"), "PRON")], 2),
            ([self._word(lexicon.NAMES, "PROPN")], 2),
            ([("that", "PRON")], 0.4),
            (self._noun_phrase(), 5),
        )

    def _plural(self) -> Tokens:
        return self._pick(
            ([self._word(("they", "we", "you"), "PRON")], 3),
            ([*self._determiner(("the", "these", "her", "our")), *self._adjective(), self._noun("s")], 3),
            ([self._word(lexicon.NUMBERS, "NUM"), *self._adjective(), self._noun("s")], 2),
            (self._bare(), 4),
        )

    def _bare(self) -> Tokens:
        """Nouns without a determiner, "train guards": later words reveal the verb."""
        words, tag = self._pick(((lexicon.BOTH, "NOUN"), 2), ((lexicon.OPEN, "ADJ"), 1))
        first = [self._word(words, tag, coined=False)] if self._chance(0.4) else []
        return [*first, self._noun("s")]

    def _object(self) -> Tokens:
        return self._pick(
            (self._noun_phrase(), 4),
            (self._bare(), 2),
            ([self._word(("her", "him", "them", "it", "that"), "PRON")], 2),
            ([], 1.5),
        )

    def _noun_phrase(self) -> Tokens:
        head = [self._noun()]
        if self._chance(0.2):
            head = [self._word((*lexicon.BOTH, *lexicon.NOUNS), "NOUN", coined=False), *head]
        if self._chance(0.06):
            head = [self._word(("can", "will", "might", "back"), "NOUN")]
        phrase = [*self._determiner(("the", "the", "a", "that", "her", "his", "this")), *self._adjective(), *head]
        if self._chance(0.12):
            phrase += [self._word(lexicon.PREPOSITIONS, "ADP"), *self._determiner(("the", "a")), self._noun()]
        if self._chance(0.06):
            phrase += [
                ("that", "PRON"),
                self._word(lexicon.PAST, "VERB", coined=False),
                self._word(("it", "him"), "PRON"),
            ]
        return phrase

    def _determiner(self, words: tuple[str, ...]) -> Tokens:
        return [(self.source.choice(words), "DET")]

    def _adjective(self) -> Tokens:
        if not self._chance(0.35):
            return []
        words = self._pick((lexicon.ADJECTIVES, 3), (lexicon.OPEN, 2), (lexicon.FLAT, 2), (lexicon.PARTICIPLES, 2))
        return [self._word(words, "ADJ")]

    def _noun(self, ending: str = "") -> tuple[str, str]:
        word, tag = self._word((*lexicon.BOTH, *lexicon.NOUNS), "NOUN")
        return (_with_s(word) if ending else word), tag

    def _place(self) -> Tokens:
        if not self._chance(0.3):
            return self._adverb(0.2)
        return [self._word(lexicon.PREPOSITIONS, "ADP"), *self._noun_phrase()]

    def _adverb(self, p: float) -> Tokens:
        return [self._word(lexicon.ADVERBS, "ADV")] if self._chance(p) else []


def _with_s(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s")) else "s")
