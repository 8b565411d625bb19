"""Output structures whose partition function, marginals and samples are exact."""

from __future__ import annotations
