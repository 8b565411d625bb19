"""Constraints and rules: energies without parameters, and methods by which nets and energies learn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins import Classes, Functions, hookimpl, lazy_names

__getattr__, _NAMES = lazy_names(globals())
__all__ = ["spen_rules", *_NAMES]


@hookimpl
def spen_energy() -> Classes:
    return {
        "unique_role": "spen_rules.roles:UniqueRole",
        "frame_roles": "spen_rules.roles:FrameRoles",
        "overlap": "spen_rules.overlap:Overlap",
        "at_most_one": "spen_rules.names:AtMostOne",
        "exactly_one": "spen_rules.names:ExactlyOne",
        "implies": "spen_rules.names:Implies",
        "excludes": "spen_rules.names:Excludes",
        "votes": "spen_rules.vote_energy:Votes",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {"majority": "spen_rules.majority:Majority"}


@hookimpl
def spen_energy_loss() -> Classes:
    return {
        "violation": "spen_rules.violation:Violation",
        "imitation": "spen_rules.imitation:Imitation",
        "expectation": "spen_rules.imitation:Expectation",
        "rank": "spen_rules.rank:Rank",
    }


@hookimpl
def spen_trainer() -> Classes:
    return {"tuning": "spen_rules.tuning:Tuning", "untrained": "spen_rules.majority:Untrained"}


@hookimpl
def spen_command() -> Functions:
    return {"rules": "spen_rules.commands:rules"}


@hookimpl
def spen_rules() -> Functions:
    return {"py": "spen_rules.votes:read_rules"}


if TYPE_CHECKING:
    from spen_rules.files import lexicon, otherwise, pattern, rule
