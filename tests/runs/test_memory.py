"""An allocator's error is reported in one sentence."""

from __future__ import annotations

import pytest
import torch

from spen_plugins.errors import RunError
from spen_plugins.loop.torch_modes import is_out_of_memory, translate_memory_errors
from tests.loaded import trained


@pytest.mark.parametrize("width", [10**12, 10**18])
def test_nets_that_do_not_fit_are_an_error_before_a_folder_exists(tmp_path, width):
    with pytest.raises(RunError, match=r"ran out of memory while building the nets \(.*\); choose smaller ones"):
        trained("labels", tmp_path / "run", **{"features.hidden": f"[{width}]"})
    assert not (tmp_path / "run").exists()


def test_memory_that_runs_out_in_training_is_an_error(tmp_path):
    with pytest.raises(RunError, match=r"ran out of memory while training \(.*\); reduce trainer\.batch_size"):
        trained("labels", tmp_path / "run", **{"energy_loss.samples": "1000000000000000"})


def test_errors_of_allocators():
    with pytest.raises(RuntimeError) as error:
        torch.empty(2**50)
    assert is_out_of_memory(error.value) and is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shapes differ"))
    with pytest.raises(RunError, match=r"while training \(MemoryError\)"), translate_memory_errors("training"):
        bytearray(2**50)
