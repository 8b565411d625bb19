"""A synthetic corpus for semantic role labelling, made from a small grammar of frames.

Labels are PropBank's kind. Subjects are agents, themes or recipients by the verb's frame and its voice, arguments stand
far from their verbs (relative clauses, control, conjoined verbs), and each core role occurs once: what a model gains
by looking at the whole output shows. Deterministic: the same sentences at every call and on every machine.
"""

from __future__ import annotations

import random
from functools import cache

from spen_plugins.readers.srl import Proposition, Sentence
from spen_plugins.samples.lexicon import ADVERBS, FRAMES, NOUNS, PLACES, TIMES, VERBS, Pattern, Slot, Verb

SIZES = {"train": 800, "validation": 200, "test": 200}
LONGEST = 28
DEPTH = 2


class _Token:
    """A word with an identity, so that arguments can name it before its place in the sentence is known."""

    __slots__ = ("word",)

    def __init__(self, word: str) -> None:
        self.word = word


Tokens = list[_Token]
Roles = list[tuple[str, Tokens]]


@cache
def sample_corpus(seed: int = 2022) -> dict[str, list[Sentence]]:
    """Sentences of `train`, `validation` and `test`; none occurs twice, in one part or in two."""
    source = random.Random(seed)
    seen: set[tuple[str, ...]] = set()
    parts: dict[str, list[Sentence]] = {}
    for part, size in SIZES.items():
        parts[part] = []
        while len(parts[part]) < size:
            sentence = _Writer(source).sentence(f"sample-{part}-{len(parts[part]) + 1:04d}")
            if len(sentence.words) <= LONGEST and sentence.words not in seen:
                seen.add(sentence.words)
                parts[part].append(sentence)
    return parts


class _Writer:
    """Writes one sentence and notes its propositions."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.found: list[tuple[_Token, str, Roles]] = []

    def sentence(self, name: str) -> Sentence:
        tokens = self._quoted() if self._chance(0.05) else self._main()
        tokens = [*tokens, _Token(".")]
        tokens[0].word = tokens[0].word[0].upper() + tokens[0].word[1:]
        place = {id(token): i for i, token in enumerate(tokens)}
        found = sorted(self.found, key=lambda item: place[id(item[0])])
        propositions = tuple(_proposition(place, len(tokens), *item) for item in found)
        return Sentence(tuple(token.word for token in tokens), propositions, name)

    def _chance(self, p: float) -> bool:
        return self.source.random() < p

    def _main(self) -> Tokens:
        """A clause, at times with a time in front and a second verb phrase."""
        front = _words(self.source.choice(TIMES)) if self._chance(0.15) else []
        shared: Roles = [("ARGM-TMP", front)] if front else []
        verb, pattern = self._pattern()
        kind = self._kind(verb, pattern.subject)
        subject = self._noun_phrase(kind, DEPTH)
        tokens = [*subject, *self._verb_phrase(verb, pattern, subject, DEPTH, shared)]
        if self._chance(0.2):
            verb, pattern = self._pattern(kind)
            tokens += [_Token("and"), *self._verb_phrase(verb, pattern, subject, 1, shared)]
        return [*front, _Token(","), *tokens] if front else tokens

    def _quoted(self) -> Tokens:
        """A report inside what it reports: its theme comes in two pieces, ARG1 and C-ARG1."""
        verb = self.source.choice([verb for verb in VERBS if verb.frame == "report"])
        inner, pattern = self._pattern()
        subject = self._noun_phrase(self._kind(inner, pattern.subject), 0)
        rest = self._verb_phrase(inner, pattern, subject, 0, [])
        speaker, predicate = self._noun_phrase(self._kind(verb, "ARG0"), 0), _Token(verb.past)
        self.found.append((predicate, verb.lemma, [("ARG1", subject), ("ARG0", speaker), ("C-ARG1", rest)]))
        return [*subject, _Token(","), *speaker, predicate, _Token(","), *rest]

    def _pattern(self, kind: str | None = None) -> tuple[Verb, Pattern]:
        """A verb and one of its patterns, of those that take a noun of this kind as subject."""
        while True:
            verb = self.source.choice(VERBS)
            pattern = self.source.choice(FRAMES[verb.frame])
            if kind is None or kind in verb.fillers(pattern.subject):
                return verb, pattern

    def _kind(self, verb: Verb, role: str) -> str:
        return self.source.choice(verb.fillers(role))

    def _noun_phrase(self, kind: str, depth: int) -> Tokens:
        noun = self.source.choice(NOUNS[kind])
        tokens = _words(noun) if noun[0].isupper() else _words(f"{self.source.choice(('the', 'the', 'a'))} {noun}")
        if len(tokens) > 1 and self._chance(0.25):
            tokens.insert(1, _Token(self.source.choice(("old", "young", "small", "famous", "quiet"))))
        if len(tokens) > 1 and depth > 0 and self._chance(0.22):
            tokens += self._relative(tokens, kind, depth - 1)
        return tokens

    def _relative(self, head: Tokens, kind: str, depth: int) -> Tokens:
        """A relative clause on `head`, whose gap is the clause's subject or its bare object."""
        head = list(head)
        pronoun = _Token("who" if kind == "person" else "that")
        while True:
            verb, pattern = self._pattern()
            if kind in verb.fillers(pattern.subject):
                return [pronoun, *self._verb_phrase(verb, pattern, head, depth, [], pronoun)]
            bare = pattern.slots[:1]
            if bare and not bare[0].preposition and kind in verb.fillers(bare[0].role):
                subject = self._noun_phrase(self._kind(verb, pattern.subject), 0)
                rest = Pattern(pattern.voice, pattern.subject, pattern.slots[1:])
                gap: Roles = [(bare[0].role, head), (f"R-{bare[0].role}", [pronoun])]
                return [pronoun, *subject, *self._verb_phrase(verb, rest, subject, depth, gap)]

    def _verb_phrase(
        self,
        verb: Verb,
        pattern: Pattern,
        subject: Tokens,
        depth: int,
        shared: Roles,
        pronoun: _Token | None = None,
        infinitive: bool = False,
    ) -> Tokens:
        """The verb with what follows it; its subject and `shared` arguments stand elsewhere in the sentence."""
        roles: Roles = [(pattern.subject, subject), *shared]
        if pronoun is not None:
            roles.append((f"R-{pattern.subject}", [pronoun]))
        number = len(self.found)  # a verb's place in the list is taken before its complements' verbs
        tokens, predicate = self._verb(verb, pattern.voice, infinitive, roles)
        self.found.insert(number, (predicate, verb.lemma, roles))
        controller = subject
        for slot in pattern.slots:
            if slot.optional and self._chance(0.4):
                continue
            filler = self._fill(verb, slot, controller, depth)
            if not slot.clause:
                controller = filler if not slot.preposition else controller
            tokens += filler
            roles.append((slot.role, filler))
        # After another verb's phrase an adjunct could be either's; only the inner one takes any.
        return tokens if len(self.found) > number + 1 else tokens + self._adjuncts(roles)

    def _verb(self, verb: Verb, voice: str, infinitive: bool, roles: Roles) -> tuple[Tokens, _Token]:
        """The predicate with the auxiliaries before it; modals and negations join `roles`."""
        tokens: Tokens = []
        if infinitive:
            tokens.append(_Token("to"))
        elif self._chance(0.2):
            tokens.append(_Token(self.source.choice(("will", "may", "must"))))
            roles.append(("ARGM-MOD", [tokens[0]]))
        bare = bool(tokens)
        negated = not infinitive and self._chance(0.12)
        if negated and not bare and voice == "active":
            tokens.append(_Token("did"))
        if voice == "passive" and not bare:
            tokens.append(_Token("was"))
        if negated:
            tokens.append(_Token("not"))
            roles.append(("ARGM-NEG", [tokens[-1]]))
        if voice == "passive" and bare:
            tokens.append(_Token("be"))
        base = bare or negated
        predicate = _Token(verb.participle if voice == "passive" else verb.lemma if base else verb.past)
        return [*tokens, predicate], predicate

    def _fill(self, verb: Verb, slot: Slot, controller: Tokens, depth: int) -> Tokens:
        """What stands in a slot: a phrase, a that-clause, or an infinitive whose subject is the controller."""
        if slot.clause == "that":
            inner, pattern = self._pattern()
            subject = self._noun_phrase(self._kind(inner, pattern.subject), depth - 1)
            return [_Token("that"), *subject, *self._verb_phrase(inner, pattern, subject, depth - 1, [])]
        if slot.clause == "to":
            simple = ("transitive", "dative", "placement", "unergative", "removal")
            inner = self.source.choice([v for v in VERBS if v.frame in simple])
            active = [pattern for pattern in FRAMES[inner.frame] if pattern.voice == "active"]
            pattern = self.source.choice(active)
            return self._verb_phrase(inner, pattern, controller, depth - 1, [], infinitive=True)
        before = [_Token(self.source.choice(slot.preposition.split("|")))] if slot.preposition else []
        return [*before, *self._noun_phrase(self._kind(verb, slot.role), depth)]

    def _adjuncts(self, roles: Roles) -> Tokens:
        tokens: Tokens = []
        taken = {role for role, _ in roles}
        for role, p, choices in (
            ("ARGM-MNR", 0.12, ADVERBS),
            ("ARGM-LOC", 0.12, PLACES),
            ("ARGM-TMP", 0.15, TIMES),
        ):
            if role not in taken and self._chance(p):
                adjunct = _words(self.source.choice(choices))
                roles.append((role, adjunct))
                tokens += adjunct
        return tokens


def _words(text: str) -> Tokens:
    return [_Token(word) for word in text.split()]


def _proposition(place: dict[int, int], length: int, predicate: _Token, lemma: str, roles: Roles) -> Proposition:
    """Roles over tokens -> BIO tags."""
    tags = ["O"] * length
    tags[place[id(predicate)]] = "B-V"
    for role, tokens in roles:
        for i, token in enumerate(tokens):
            assert tags[place[id(token)]] == "O"
            tags[place[id(token)]] = f"I-{role}" if i else f"B-{role}"
    return Proposition(place[id(predicate)], lemma, tuple(tags))
