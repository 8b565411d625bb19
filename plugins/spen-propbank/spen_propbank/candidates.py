"""Candidates of task `propbank.senses`: the senses that a predicate may have, with their attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from spen_plugins.sentences import Proposition, Sentence
from spen_propbank.lexicon import particles, rolesets

PLACES = 40
"""Maximal number of candidates of a predicate."""
NEAR = 8
"""Number of words after the predicate in which particles are searched."""
_SHARES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.95)
_WORD = re.compile(r"[a-z]{3,}")
_FORMS = """
arise arose arisen;awake awoke awoken;be am is are was were been 's 're 'm;bear bore borne born;beat beaten;
become became;begin began begun;bend bent;bet;bind bound;bite bit bitten;bleed bled;blow blew blown;
break broke broken;breed bred;bring brought;build built;burn burnt;buy bought;catch caught;
choose chose chosen;cling clung;come came;creep crept;deal dealt;dig dug;do does did done;draw drew drawn;
dream dreamt;drink drank drunk;drive drove driven;dwell dwelt;eat ate eaten;fall fell fallen;feed fed;
feel felt;fight fought;find found;flee fled;fling flung;fly flew flown;forbid forbade forbidden;
foresee foresaw foreseen;forget forgot forgotten;forgive forgave forgiven;freeze froze frozen;get got gotten;
give gave given;go went gone goes;grind ground;grow grew grown;hang hung;have has had 've;hear heard;
hide hid hidden;hold held;keep kept;kneel knelt;know knew known;lay laid;lead led;lean leant;learn learnt;
leave left;lend lent;lie lay lain;light lit;lose lost;make made;mean meant;meet met;mistake mistook mistaken;
overcome overcame;pay paid;prove proven;ride rode ridden;ring rang rung;rise rose risen;run ran;say said;
see saw seen;seek sought;sell sold;send sent;sew sewn;shake shook shaken;shine shone;shoot shot;show shown;
shrink shrank shrunk;sing sang sung;sink sank sunk;sit sat;sleep slept;slide slid;sling slung;
speak spoke spoken;speed sped;spend spent;spin spun;spit spat;spring sprang sprung;stand stood;
steal stole stolen;stick stuck;sting stung;stink stank stunk;strike struck stricken;string strung;
strive strove striven;swear swore sworn;sweep swept;swell swollen;swim swam swum;swing swung;take took taken;
teach taught;tear tore torn;tell told;think thought;throw threw thrown;understand understood;
undergo underwent undergone;undertake undertook undertaken;wake woke woken;wear wore worn;weave wove woven;
weep wept;win won;wind wound;withdraw withdrew withdrawn;withstand withstood;wring wrung;write wrote written
"""
"""Irregular forms of English verbs, each after its verb."""


class Candidate(NamedTuple):
    """A sense, "" for an unknown word, and its attributes as strings."""

    sense: str
    attributes: tuple[str, ...]


class Inventory:
    """Senses by lemma, from the lexicon and the training part, the most frequent first.

    Args:
        counts: lemma -> sense -> number of times in the training part.
        forms: word in lower case -> its lemmas in the training part.
    """

    def __init__(self, counts: Mapping[str, Mapping[str, int]], forms: Mapping[str, Sequence[str]]) -> None:
        self.counts = {lemma: dict(senses) for lemma, senses in counts.items()}
        self.forms = {form: tuple(lemmas) for form, lemmas in forms.items()}
        self._particles = lru_cache(20_000)(self._list_particles)
        self._candidates = lru_cache(20_000)(self._list_candidates)

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> Inventory:
        """The inventory of sentences with senses."""
        counts: dict[str, Counter[str]] = {}
        forms: dict[str, Counter[str]] = {}
        for sentence in sentences:
            for proposition in sentence.propositions:
                if proposition.roleset is not None:
                    lemma = find_lemma(proposition) or _find_verb(proposition.roleset)
                    form = sentence.words[proposition.predicate].lower()
                    counts.setdefault(lemma, Counter())[proposition.roleset] += 1
                    forms.setdefault(form, Counter())[lemma] += 1
        return cls(counts, {form: [lemma for lemma, _ in lemmas.most_common()] for form, lemmas in forms.items()})

    def lemmas(self, word: str, lemma: str | None = None) -> tuple[str, ...]:
        """Lemmas of a predicate: the given lemma, if it is known; otherwise those of the word in the training part;
        otherwise those of the lexicon that its spelling allows; otherwise the word in lower case."""
        if lemma is not None and self._is_known(lemma):
            return (lemma,)
        form = word.lower()
        return (
            self.forms.get(form)
            or tuple(spelling for spelling in dict.fromkeys(list_spellings(form)) if self._is_known(spelling))
            or (form,)
        )

    def candidates(self, words: Sequence[str], predicate: int, lemma: str | None = None) -> tuple[Candidate, ...]:
        """The candidates of a predicate, at least one, at most `PLACES`."""
        form = words[predicate].lower()
        particles = self._particles(form, lemma)
        following = (word.lower() for word in words[predicate + 1 : predicate + 1 + NEAR])
        return self._candidates(form, lemma, tuple(word if word in particles else "" for word in following))

    def _list_particles(self, form: str, lemma: str | None) -> set[str]:
        """The particles of the senses that a predicate may have."""
        lexicon = rolesets()
        groups = (
            (*self.counts.get(name, ()), *lexicon.senses(name), *lexicon.phrases(name))
            for name in self.lemmas(form, lemma)
        )
        return {particle for senses in groups for sense in senses for particle in particles(sense)}

    def _list_candidates(self, form: str, lemma: str | None, following: tuple[str, ...]) -> tuple[Candidate, ...]:
        """The candidates of a predicate in lower case; `following` are the words after it, "" for all but particles."""
        lemmas = self.lemmas(form, lemma)
        counts: Counter[str] = Counter()
        for name in lemmas:
            counts.update(self.counts.get(name, {}))
        total = counts.total()
        for name in lemmas:
            phrases = (
                sense
                for sense in rolesets().phrases(name)
                if all(particle in following for particle in particles(sense))
            )
            for sense in (*rolesets().senses(name), *phrases):
                counts.setdefault(sense, 0)
        if not counts:
            counts[f"{lemma}.01" if lemma else ""] = 0
        heads = tuple(f"{name}." for name in lemmas)
        ordered = sorted(counts, key=lambda sense: (-counts[sense], not sense.startswith(heads), sense))[:PLACES]
        return tuple(
            Candidate(
                sense,
                (
                    f"place {min(place, 5)}",
                    _describe_share(counts[sense], total),
                    *_describe_particles(sense, following),
                    *_describe_sense(sense, lemmas[0], form),
                ),
            )
            for place, sense in enumerate(ordered)
        )

    def _is_known(self, lemma: str) -> bool:
        return lemma in self.counts or bool(rolesets().senses(lemma))


def find_lemma(proposition: Proposition) -> str | None:
    """The predicate's lemma; some formats have its sense in that place, such as `leave.01` for leave."""
    lemma = proposition.lemma
    if lemma and lemma == proposition.roleset:
        lemma = _find_verb(lemma)
    return lemma.lower() if lemma else None


def _find_verb(roleset: str) -> str:
    """The verb of a roleset's id: give of `give_up.07`."""
    return roleset.rpartition(".")[0].partition("_")[0]


def list_spellings(word: str) -> Iterator[str]:
    """Possible lemmas of a word in lower case, by its spelling."""
    yield from _read_irregular_forms().get(word, ())
    yield word
    for ending in ("s", "es", "ed", "d", "ing", "n", "en"):
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < 2:
            continue
        yield stem
        yield f"{stem}e"
        if stem[-1] == "i":
            yield f"{stem[:-1]}y"
        if ending == "ing" and stem[-1] == "y":
            yield f"{stem[:-1]}ie"
        if len(stem) > 2 and stem[-1] == stem[-2]:
            yield stem[:-1]


def _describe_share(count: int, total: int) -> str:
    """A sense's share of the lemma's training examples, and the number of these, both roughly."""
    level = sum(count / max(total, 1) > bound for bound in _SHARES)
    return f"share {level} of {'some' if total > 10 else 'few' if total else 'none'}"


def _describe_particles(sense: str, following: Sequence[str]) -> tuple[str, ...]:
    names = particles(sense)
    if not names:
        return ("particle none",)
    distances = [following.index(name) for name in names if name in following]
    position = "absent" if len(distances) < len(names) else "next" if min(distances) == 0 else "near"
    return (f"particle {position}", *(f"particle {name} {position}" for name in names))


@lru_cache(20_000)
def _describe_sense(sense: str, lemma: str, form: str) -> tuple[str, ...]:
    """Attributes of a sense that do not depend on the sentence."""
    name, _, number = sense.rpartition(".")
    attributes = [f"sense {sense}", f"number {number}", f"lemma {'same' if name == lemma else 'other'}"]
    roleset = rolesets().get(sense)
    if roleset is not None:
        spellings = set(list_spellings(form))
        form_tags = sorted({pos for alias, pos in roleset.aliases if alias in spellings})
        attributes += [f"is {pos}" for pos in sorted({pos for _, pos in roleset.aliases})]
        attributes += [f"form is {pos}" for pos in form_tags]
        attributes += [f"has {role}" for role in roleset.roles]
        attributes += [f"gloss {word}" for word in dict.fromkeys(_WORD.findall(roleset.gloss.lower()))]
    return tuple(attributes)


def select_attributes(candidates: Iterable[Sequence[Candidate]], min_count: int = 2) -> list[str]:
    """The attributes that candidates have at least `min_count` times, in alphabetical order."""
    counts = Counter(name for group in candidates for candidate in group for name in candidate.attributes)
    return sorted(name for name, count in counts.items() if count >= min_count)


def list_senses(sentence: Sentence) -> set[str]:
    """The senses of a sentence's predicates."""
    return {proposition.roleset for proposition in sentence.propositions if proposition.roleset}


@cache
def _read_irregular_forms() -> dict[str, tuple[str, ...]]:
    """Irregular form in lower case -> its verbs."""
    verbs: dict[str, tuple[str, ...]] = {}
    for verb, *forms in (entry.split() for entry in _FORMS.replace("\n", "").split(";")):
        for form in forms:
            verbs[form] = (*verbs.get(form, ()), verb)
    return verbs
