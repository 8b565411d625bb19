"""Constraints as energies without parameters, and the training of a net that keeps to them (Li et al. 2020)."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl


@hookimpl
def spen_energy() -> Classes:
    return {
        "unique_role": "spen_rules.roles:UniqueRole",
        "at_most_one": "spen_rules.names:AtMostOne",
        "exactly_one": "spen_rules.names:ExactlyOne",
        "implies": "spen_rules.names:Implies",
        "excludes": "spen_rules.names:Excludes",
    }


@hookimpl
def spen_energy_loss() -> Classes:
    return {"violation": "spen_rules.violation:Violation"}


@hookimpl
def spen_trainer() -> Classes:
    return {"tuning": "spen_rules.tuning:Tuning"}
