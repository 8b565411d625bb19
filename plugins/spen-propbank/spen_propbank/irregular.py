"""Irregular forms of English verbs, and the verbs that they may be of."""

from __future__ import annotations

from functools import cache

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


@cache
def _verbs() -> dict[str, tuple[str, ...]]:
    verbs: dict[str, tuple[str, ...]] = {}
    for verb, *forms in (entry.split() for entry in _FORMS.replace("\n", "").split(";")):
        for form in forms:
            verbs[form] = (*verbs.get(form, ()), verb)
    return verbs


def list_irregular(form: str) -> tuple[str, ...]:
    """The verbs of which a word, in lower case, is an irregular form."""
    return _verbs().get(form, ())
