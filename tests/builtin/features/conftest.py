"""The task of the tests of feature networks."""

from __future__ import annotations

import pytest

import spen_plugins as sp
from tests.loaded import loaded


@pytest.fixture
def task() -> sp.Task:
    return loaded("srl", corpus="sample")
