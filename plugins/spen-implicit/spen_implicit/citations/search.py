"""Search for fields of high reward near a net's proposal."""

from __future__ import annotations

import torch
from torch import Tensor

RULE = 4.0
"""Loss of fields that no rule of a token names, in nats: about ln of one mistake in fifty."""
COSTS = {"break": 1.0, "space": 5.0, "glued": 20.0}
"""Costs of a change of field, by the gap before the token."""
AGAIN = 4.0
"""Loss of a field at the tokens of a piece if another piece of the field has a larger lead."""
ROUNDS = 3
NET = (0.5, 0.25, 0.12, 0.06)
"""Weights of the net's ln q, one per result."""


def search(log_q: Tensor, mask: Tensor, votes: Tensor, costs: Tensor, begins: Tensor) -> Tensor:
    """The best fields under ln q, the rules for words and the costs of changes, each field about once.

    Shapes: log_q `(batch, token, field)`; mask `(batch, token)` boolean; votes as in `reward.terms`; costs
    `(batch, token)`; begins `(field,)`, 1 for each field that may begin a citation. Returns field numbers
    `(batch, len(NET), token)`, 0 on padding.
    """
    rule_scores = RULE * (votes - votes.amax(-1, keepdim=True))
    rule_scores[:, 0] += RULE * (begins - 1)
    weights = log_q.new_tensor(NET)[:, None, None]
    scores = (weights * log_q.unsqueeze(1) + rule_scores.unsqueeze(1)).flatten(0, 1)
    masks, costs = (values.repeat_interleave(len(NET), 0) for values in (mask, costs))
    fields = find_pieces(scores, masks, costs)
    for _ in range(ROUNDS):
        scores = scores - AGAIN * find_repeats(scores, fields, masks)
        fields = find_pieces(scores, masks, costs)
    return fields.unflatten(0, (-1, len(NET)))


def find_pieces(scores: Tensor, mask: Tensor, costs: Tensor) -> Tensor:
    """The fields of the highest score, less the cost of each change (Viterbi in time linear in the number of fields).

    Shapes: scores `(batch, token, field)`, mask and costs `(batch, token)`. Returns `(batch, token)`, 0 on padding.
    """
    best = scores[:, 0]
    same_fields = torch.arange(scores.shape[-1], device=scores.device).expand_as(best)
    pointers = []
    for t in range(1, scores.shape[1]):
        top, first = best.max(1, keepdim=True)
        changed_score = top - costs[:, t, None]
        is_changed = (changed_score > best) & mask[:, t, None]
        pointers.append(torch.where(is_changed, first, same_fields))
        best = torch.where(mask[:, t, None], torch.maximum(best, changed_score) + scores[:, t], best)
    field = best.argmax(-1)
    path = [field]
    for previous in reversed(pointers):
        field = previous.gather(1, field.unsqueeze(1)).squeeze(1)
        path.append(field)
    return torch.stack(path[::-1], 1) * mask


def find_repeats(scores: Tensor, fields: Tensor, mask: Tensor) -> Tensor:
    """1 at each token and its field if another piece of that field has a larger lead over its rival.

    Shapes: scores `(batch, token, field)`; fields, mask `(batch, token)`. Returns `(batch, token, field)`.
    """
    b, t, k = scores.shape
    change = torch.zeros_like(fields)
    change[:, 1:] = (fields[:, 1:] != fields[:, :-1]) & mask[:, 1:]
    piece = change.cumsum(1)
    own_scores = scores.gather(2, fields.unsqueeze(2)).squeeze(2)
    rival = scores.scatter(2, fields.unsqueeze(2), float("-inf")).amax(2)
    lead = scores.new_zeros(b, t).scatter_add(1, piece, (own_scores - rival) * mask)
    piece_leads = lead.gather(1, piece)
    largest_leads = scores.new_full((b, k), float("-inf")).scatter_reduce(
        1, fields, piece_leads.masked_fill(~mask, -1e9), "amax"
    )
    is_behind = (piece_leads < largest_leads.gather(1, fields) - 1e-6) & mask
    return torch.zeros_like(scores).scatter(2, fields.unsqueeze(2), is_behind.unsqueeze(2).to(scores.dtype))
