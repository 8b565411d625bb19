"""Roles of arcs under the constraints of semantic roles (Belanger et al. 2017, Eq. 16).

Q: no two arguments of a predicate overlap, and none of the core roles A0 to A5 occurs twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

Repair = Literal["none", "heuristic", "ilp"]
"""Choice of the constraints' treatment in a config."""

LEAST = 1e-12  # a probability of 0 has no logarithm
MANY = 5000
"""Maximal number of unknowns in one integer program; larger ones are split by predicates."""


@dataclass(frozen=True)
class Pairs:
    """The pairs of predicate and span of a batch, concatenated, `(pair,)` each: the predicate's number in the batch,
    from 0, and the first and the last word of the span."""

    predicate: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def take(self, indices: np.ndarray) -> Pairs:
        return Pairs(self.predicate[indices], self.first[indices], self.last[indices])

    def words(self) -> tuple[np.ndarray, np.ndarray]:
        """The words of all spans: the index of the pair, and a number unique to a word of a predicate."""
        size = self.last - self.first + 1
        pair = np.repeat(np.arange(len(size)), size)
        word = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - self.first, size)
        return pair, self.predicate[pair] * (self.last.max(initial=0) + 1) + word


def find_violations(pairs: Pairs, roles: np.ndarray, core: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the predicates with overlapping arguments, and of those with a core role twice, given roles `(pair,)`,
    0 for none, and `core`, `(role,)`, boolean."""
    arcs = np.flatnonzero(roles)
    arc_pairs = pairs.take(arcs)
    pair, word = arc_pairs.words()
    overlapping = arc_pairs.predicate[pair[_are_repeated(word)]]
    key = arc_pairs.predicate * len(core) + roles[arcs]
    return np.unique(overlapping), np.unique(arc_pairs.predicate[core[roles[arcs]] & _are_repeated(key)])


def repair_roles(p: np.ndarray, pairs: Pairs, core: np.ndarray, repair: Repair) -> np.ndarray:
    """Roles under the constraints, `(pair,)`, 0 for none, given probabilities `(pair, role)` and `core`, `(role,)`,
    boolean; with "none" the most probable ones."""
    roles = p.argmax(-1)
    if repair == "none":
        return roles
    violating = np.union1d(*find_violations(pairs, roles, core))
    affected = np.flatnonzero(np.isin(pairs.predicate, violating))
    if len(affected):
        solve = repair_greedily if repair == "heuristic" else solve_exactly
        roles[affected] = solve(p[affected], pairs.take(affected), core)
    return roles


def repair_greedily(p: np.ndarray, pairs: Pairs, core: np.ndarray) -> np.ndarray:
    """Each predicate keeps its most probable arc, loses those that conflict with it, and so on with the rest.

    Arguments and result as in `repair_roles`.
    """
    roles = p.argmax(-1)
    remaining, repaired = np.flatnonzero(roles), np.zeros_like(roles)
    confidence = p[np.arange(len(p)), roles]
    # The most probable first, within each predicate.
    remaining = remaining[np.lexsort((-confidence[remaining], pairs.predicate[remaining]))]
    while len(remaining):
        _, best_places, inverse = np.unique(pairs.predicate[remaining], return_index=True, return_inverse=True)
        repaired[remaining[best_places]] = roles[remaining[best_places]]
        winner = remaining[best_places][inverse]
        overlap = (pairs.first[remaining] <= pairs.last[winner]) & (pairs.first[winner] <= pairs.last[remaining])
        remaining = remaining[~overlap & ~((roles[remaining] == roles[winner]) & core[roles[remaining]])]
    return repaired


def solve_exactly(p: np.ndarray, pairs: Pairs, core: np.ndarray) -> np.ndarray:
    """The maximum of Σ over pairs of ln p under the constraints, exact, by integer linear programs.

    Arguments and result as in `repair_roles`. An unknown is a pair's role that is more probable than none: others
    gain nothing, since constraints only forbid. Of the roles without constraints, the most probable is enough.
    """
    log_p = np.log(np.maximum(p, LEAST))
    gain = log_p - log_p[:, :1]
    free_gain = np.where(core, -np.inf, gain)
    best_role = free_gain.argmax(-1)
    best_gain = np.maximum(free_gain[np.arange(len(p)), best_role], 0)
    is_useful = core & (gain > best_gain[:, None])
    is_useful[np.arange(len(p)), best_role] |= best_gain > 0
    pair, role = np.nonzero(is_useful)
    order = np.argsort(pairs.predicate[pair], kind="stable")
    pair, role = pair[order], role[order]
    roles = np.zeros(len(p), dtype=np.int64)
    for part in _split_unknowns(pairs.predicate[pair]):
        chosen = _solve(gain[pair[part], role[part]], pairs.take(pair[part]), role[part], core)
        roles[pair[part][chosen]] = role[part][chosen]
    return roles


def _split_unknowns(predicate: np.ndarray) -> Iterator[slice]:
    """Slices of at most `MANY` unknowns, unless one predicate has more; none divides a predicate."""
    starts = np.append(np.flatnonzero(np.diff(predicate, prepend=-1)), len(predicate))
    begin = 0
    for start, end in pairwise(starts):
        if end - begin > MANY and start > begin:
            yield slice(begin, start)
            begin = start
    if begin < len(predicate):
        yield slice(begin, len(predicate))


def _solve(gain: np.ndarray, unknowns: Pairs, role: np.ndarray, core: np.ndarray) -> np.ndarray:
    """The unknowns that are on in the best solution, `(unknown,)` boolean."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    # A word is in at most one argument of each predicate. So a pair has at most one role, and spans that share a word
    # don't overlap.
    owner, word = unknowns.words()
    core_rows = np.flatnonzero(core[role])
    role_keys = unknowns.predicate[core_rows] * len(core) + role[core_rows] + word.max(initial=0) + 1
    column, key = np.concatenate([owner, core_rows]), np.concatenate([word, role_keys])
    is_shared = _are_repeated(key)
    if not is_shared.any():
        return gain > 0
    names, row = np.unique(key[is_shared], return_inverse=True)
    table = csr_array((np.ones(len(row)), (row, column[is_shared])), shape=(len(names), len(gain)))
    solution = milp(
        -gain,
        integrality=np.ones(len(gain)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(table, ub=np.ones(len(names))),
        options={"mip_rel_gap": 0.0},
    )
    assert solution.x is not None, solution.message  # all off is a solution
    return solution.x > 0.5


def _are_repeated(key: np.ndarray) -> np.ndarray:
    """True where a number occurs more than once."""
    _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    return count[inverse] > 1
