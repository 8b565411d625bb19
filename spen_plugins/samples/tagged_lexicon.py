"""Words of the synthetic corpora of tagged sentences. Plain data."""

from __future__ import annotations

# Parts of speech

BOTH = (
    *("walk", "plan", "drink", "answer", "visit", "paint", "call", "watch", "guide", "rest", "show", "cook", "play"),
    *("work", "dance", "test", "sail", "guard", "report", "race", "fish", "hammer", "plant", "train", "load"),
)
"""Nouns that are also verbs; both take -s."""
NOUNS = (
    *("door", "river", "teacher", "garden", "engine", "letter", "farmer", "bridge", "window", "village", "kitchen"),
    *("ticket", "doctor", "carpet", "island", "cousin", "mirror", "market", "basket", "tunnel", "pilot", "dog"),
)
VERBS = (
    *("carry", "bring", "choose", "follow", "remember", "find", "destroy", "borrow", "describe", "sell", "admire"),
    *("repair", "invite", "collect", "ignore"),
)
PAST = (
    *("carried", "brought", "chose", "followed", "remembered", "found", "destroyed", "borrowed", "described"),
    *("sold", "admired", "repaired", "invited", "collected", "ignored"),
)
MOVES = ("went", "walked", "came", "returned", "drove", "hurried")
WANTS = ("want", "hope", "decide", "try", "promise", "refuse", "agree")
SAYS = ("know", "believe", "say", "think", "hear", "doubt")
PERCEIVES = ("saw", "watched", "heard", "let", "made")
PHRASAL = (
    *(("turn", "off"), ("turn", "on"), ("pick", "up"), ("put", "down"), ("write", "down"), ("call", "up")),
    *(("bring", "in"), ("hand", "over"), ("carry", "on"), ("take", "off"), ("fill", "in"), ("look", "over")),
)
ADJECTIVES = ("old", "quiet", "narrow", "green", "famous", "cheap", "heavy", "strange", "tiny", "rich")
OPEN = ("open", "clean", "warm", "empty", "dry", "clear", "cool", "light")
"""Adjectives that are also verbs."""
FLAT = ("fast", "hard", "early", "late", "straight", "daily", "well", "low")
"""Adjectives that are also adverbs."""
PARTICIPLES = ("painted", "broken", "locked", "borrowed", "burned", "hidden", "planned", "loaded", "tested", "guarded")
ADVERBS = ("slowly", "often", "never", "quietly", "soon", "again", "gladly", "badly", "here", "today")
PREPOSITIONS = (
    "in",
    "on",
    "over",
    "near",
    "by",
    "with",
    "from",
    "under",
    "off",
    "down",
    "up",
    "like",
    "before",
    "after",
)
NAMES = (
    *("Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Irma", "Jonas", "Karla", "Leo"),
    *("Will", "Grace", "May", "Mark", "Bill", "Rose"),
)
NUMBERS = ("two", "three", "seven", "ten", "40", "1987", "250", "3.5", "12")
SUBORDINATORS = ("because", "while", "if", "before", "after", "since", "when", "as")
MODALS = ("can", "will", "may", "must", "might", "could")
ENDINGS = {
    "NOUN": ("ness", "tion", "ment", "ity", "ism", "er"),
    "ADJ": ("ous", "able", "ful", "ish", "less", "er"),
    "ADV": ("ly", "wise"),
    "VERB": ("ize", "ify", "ate"),
}
"""Suffixes that reveal an unknown word's part of speech; -er does not."""
ONSETS = (
    "b",
    "br",
    "d",
    "dr",
    "f",
    "g",
    "gl",
    "k",
    "kr",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
    "z",
)
VOWELS = ("a", "e", "i", "o", "u", "ea", "oo")
CODAS = ("b", "d", "g", "l", "m", "n", "nd", "p", "r", "rk", "s", "st", "t")

# Names

FIRST = (
    *("Anna", "Boris", "Clara", "David", "Elena", "Martin", "Nadia", "Oscar", "Priya", "Samuel", "Teresa", "Victor"),
    *("Paris", "Austin", "Florence", "Jordan", "Sydney", "Victoria", "Charlotte", "Chad"),
)
LAST = (
    *("Keller", "Novak", "Ortiz", "Petrov", "Quinn", "Rossi", "Silva", "Tanaka", "Weber", "Ford", "Marsh", "Fields"),
    *("Washington", "Lincoln", "London", "Houston", "Hamilton", "Cleveland", "Bolton", "Orleans"),
)
PLACES = (
    *("Lisbon", "Oslo", "Cairo", "Geneva", "Kyoto", "Leeds", "Porto", "Dublin", "Nairobi", "Bremen", "Toronto"),
    *("Paris", "Austin", "Florence", "Jordan", "Sydney", "Victoria", "Charlotte", "Chad"),
    *("Washington", "Lincoln", "London", "Houston", "Hamilton", "Cleveland", "Bolton", "Orleans"),
)
"""The last two lines are also among first and last names."""
COMPANIES = ("Nortex", "Veltron", "Amberly", "Corvida", "Silvex", "Quantor", "Marsh", "Ford", "Victoria", "Orleans")
COMPANY_ENDS = ("Inc.", "Ltd.", "Group", "Motors", "Foods", "Airlines", "& Sons", "Brothers", "Press", "Bank")
INSTITUTIONS = ("University", "Museum", "Hospital", "Institute", "Library", "Academy", "College")
CLUBS = ("United", "Rovers", "City", "Lions", "Wanderers", "Eagles")
PAPERS = ("Times", "Herald", "Post", "Gazette", "Tribune")
LAND = ("Mount", "Lake", "Cape", "Fort", "Port", "New", "North", "South", "San")
WAYS = ("Street", "Bridge", "Square", "County", "Island", "Park")
TITLES = ("Mr.", "Mrs.", "Dr.", "President", "Minister", "Judge")
JOBS = ("lawyer", "manager", "singer", "player", "minister", "driver", "director", "painter")
TRADES = ("shares", "workers", "prices", "players", "tickets", "fans", "plans")
DAYS = ("Monday", "Friday", "Sunday", "March", "August", "Christmas")
PEOPLES = ("German", "Irish", "French", "Polish", "Kenyan")
ACTS = ("praised", "sued", "met", "called", "left", "joined", "hired", "blamed", "visited", "trusted")
"""Verbs that people, places and organisations can all precede."""
GOES = ("left", "visited", "crossed", "reached")
"""Two of these apply to places only."""
BEATS = ("beat", "held", "faced", "met", "stunned")
