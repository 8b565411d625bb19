"""Words and frames of the synthetic SRL corpus. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Slot:
    """A complement after the verb: its role and its marking."""

    role: str
    preposition: str = ""
    """"" for a bare phrase; alternatives separated by |."""
    clause: str = ""
    """"that": a clause; "to": an infinitive, its subject the last bare phrase before it (the verb's own, else)."""
    optional: bool = False


@dataclass(frozen=True)
class Pattern:
    """A syntactic realisation of a frame."""

    voice: str
    subject: str
    slots: tuple[Slot, ...] = ()


@dataclass(frozen=True)
class Verb:
    """Forms, frame, and the kinds of nouns that fill each role (people by default)."""

    lemma: str
    past: str
    participle: str
    frame: str
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def fillers(self, role: str) -> tuple[str, ...]:
        """Kinds of nouns that fill a role."""
        return self.kinds.get(role, ("person",))


_BY = Slot("ARG0", "by", optional=True)
_THEME = Slot("ARG1")

FRAMES: dict[str, tuple[Pattern, ...]] = {
    "unergative": (Pattern("active", "ARG0"),),
    "unaccusative": (Pattern("active", "ARG1"),),
    "transitive": (Pattern("active", "ARG0", (_THEME,)), Pattern("passive", "ARG1", (_BY,))),
    "causative": (
        Pattern("active", "ARG0", (_THEME,)),
        Pattern("active", "ARG1"),
        Pattern("passive", "ARG1", (_BY,)),
    ),
    "dative": (
        Pattern("active", "ARG0", (_THEME, Slot("ARG2", "to"))),
        Pattern("active", "ARG0", (Slot("ARG2"), _THEME)),
        Pattern("passive", "ARG1", (Slot("ARG2", "to"), _BY)),
        Pattern("passive", "ARG2", (_THEME, _BY)),
    ),
    "placement": (
        Pattern("active", "ARG0", (_THEME, Slot("ARG2", "on|near"))),
        Pattern("passive", "ARG1", (Slot("ARG2", "on|near"), _BY)),
    ),
    "loading": (
        Pattern("active", "ARG0", (_THEME, Slot("ARG2", "onto"))),
        Pattern("active", "ARG0", (Slot("ARG2"), Slot("ARG1", "with"))),
        Pattern("passive", "ARG2", (Slot("ARG1", "with"), _BY)),
    ),
    "removal": (
        Pattern("active", "ARG0", (_THEME, Slot("ARG2", "from", optional=True))),
        Pattern("passive", "ARG1", (Slot("ARG2", "from", optional=True), _BY)),
    ),
    "report": (Pattern("active", "ARG0", (Slot("ARG1", clause="that"),)),),
    "subject-control": (Pattern("active", "ARG0", (Slot("ARG1", clause="to"),)),),
    "object-control": (
        Pattern("active", "ARG0", (_THEME, Slot("ARG2", clause="to"))),
        Pattern("passive", "ARG1", (Slot("ARG2", clause="to"),)),
    ),
}

_GOODS = {"ARG1": ("thing",)}
_ANYTHING = {"ARG1": ("person", "thing", "animal")}
_LIVING = {"ARG0": ("person", "animal"), "ARG1": ("person", "animal")}
_MOVED = {"ARG1": ("thing",), "ARG2": ("vehicle",)}

VERBS: tuple[Verb, ...] = (
    Verb("laugh", "laughed", "laughed", "unergative"),
    Verb("sleep", "slept", "slept", "unergative", _LIVING),
    Verb("sing", "sang", "sung", "unergative"),
    Verb("arrive", "arrived", "arrived", "unaccusative", _ANYTHING),
    Verb("vanish", "vanished", "vanished", "unaccusative", _ANYTHING),
    Verb("fall", "fell", "fallen", "unaccusative", _ANYTHING),
    Verb("repair", "repaired", "repaired", "transitive", {"ARG1": ("thing", "vehicle")}),
    Verb("paint", "painted", "painted", "transitive", _ANYTHING),
    Verb("find", "found", "found", "transitive", _ANYTHING),
    Verb("see", "saw", "seen", "transitive", _ANYTHING),
    Verb("follow", "followed", "followed", "transitive", _LIVING),
    Verb("thank", "thanked", "thanked", "transitive"),
    Verb("chase", "chased", "chased", "transitive", _LIVING),
    Verb("admire", "admired", "admired", "transitive", _ANYTHING),
    Verb("break", "broke", "broken", "causative", {"ARG1": ("thing", "vehicle")}),
    Verb("move", "moved", "moved", "causative", _ANYTHING),
    Verb("burn", "burned", "burned", "causative", _GOODS),
    Verb("give", "gave", "given", "dative", _GOODS),
    Verb("send", "sent", "sent", "dative", _GOODS),
    Verb("show", "showed", "shown", "dative", {"ARG1": ("thing", "animal", "person")}),
    Verb("sell", "sold", "sold", "dative", {"ARG1": ("thing", "animal", "vehicle")}),
    Verb("lend", "lent", "lent", "dative", _GOODS),
    Verb("offer", "offered", "offered", "dative", _GOODS),
    Verb("put", "put", "put", "placement", {"ARG1": ("thing",), "ARG2": ("thing", "vehicle")}),
    Verb("leave", "left", "left", "placement", {"ARG1": ("thing", "animal"), "ARG2": ("vehicle", "thing")}),
    Verb("hide", "hid", "hidden", "placement", {"ARG1": ("thing", "person"), "ARG2": ("vehicle", "thing")}),
    Verb("load", "loaded", "loaded", "loading", _MOVED),
    Verb("pack", "packed", "packed", "loading", _MOVED),
    Verb("steal", "stole", "stolen", "removal", {"ARG1": ("thing", "vehicle", "animal")}),
    Verb("borrow", "borrowed", "borrowed", "removal", {"ARG1": ("thing", "vehicle")}),
    Verb("take", "took", "taken", "removal", {"ARG1": ("thing", "animal")}),
    Verb("say", "said", "said", "report"),
    Verb("believe", "believed", "believed", "report"),
    Verb("report", "reported", "reported", "report"),
    Verb("hope", "hoped", "hoped", "subject-control"),
    Verb("refuse", "refused", "refused", "subject-control"),
    Verb("promise", "promised", "promised", "subject-control"),
    Verb("persuade", "persuaded", "persuaded", "object-control"),
    Verb("force", "forced", "forced", "object-control"),
    Verb("ask", "asked", "asked", "object-control"),
)

NOUNS: dict[str, tuple[str, ...]] = {
    "person": (
        *("nurse", "farmer", "teacher", "sailor", "lawyer", "baker", "doctor", "singer", "neighbour", "engineer"),
        *("soldier", "student", "judge", "painter", "driver", "child", "Anna", "Boris", "Clara", "David", "Elena"),
    ),
    "thing": (
        *("letter", "lamp", "book", "chair", "table", "clock", "basket", "picture", "ring", "violin", "map", "coat"),
        *("ladder", "mirror", "bottle", "cheese"),
    ),
    "animal": ("dog", "cat", "horse", "goat", "fox", "goose"),
    "vehicle": ("truck", "boat", "wagon", "bicycle", "sledge"),
}

TIMES = ("yesterday", "in the morning", "on Monday", "last week", "after the war", "at noon", "in 1987", "every day")
PLACES = ("in the kitchen", "at the market", "behind the church", "in the old town", "at the station", "by the river")
ADVERBS = ("quickly", "with great care", "quietly", "by mistake", "without a word", "gladly")
