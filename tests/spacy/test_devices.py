"""Devices on which components predict: spaCy's by default, or the configured one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
import thinc.backends
import torch
from thinc.api import CupyOps

from spen_plugins.errors import ConfigError
from spen_spacy import component
from tests.loaded import piped


def find_device_types(pipe: Any, part: str = "model") -> set[str]:
    """Returns the types of the devices that hold a part's weights."""
    model = pipe.run(part).predictor.model
    return {tensor.device.type for tensor in (*model.parameters(), *model.buffers())}


@pytest.fixture
def requested_devices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices requested when runs are loaded; each run is loaded to the CPU instead."""
    devices: list[str] = []
    run = component.Run

    def load_to_cpu(place: Path, device: str, **options: Any) -> Any:
        devices.append(device)
        return run(place, **options)

    monkeypatch.setattr(component, "Run", load_to_cpu)
    return devices


def test_spacys_device_is_the_default(
    runs: dict[str, Path],
    settings: dict[str, dict[str, Any]],
    requested_devices: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nlp = piped("spen_ner", **settings["spen_ner"])
    assert requested_devices == ["cpu"]
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    previous_ops = thinc.backends.get_current_ops()
    try:
        thinc.backends.set_current_ops(CupyOps())  # as spacy.prefer_gpu(1) does on a machine with a GPU
        nlp.add_pipe("spen_srl", config=settings["spen_srl"])
        nlp.add_pipe("spen_pos", config=settings["spen_pos"] | {"device": "cpu"})
    finally:
        thinc.backends.set_current_ops(previous_ops)
    assert requested_devices == ["cpu", "cuda:1", "cuda:1", "cpu"]


@pytest.mark.parametrize("factory", ["spen_ner", "spen_pos", "spen_srl", "spen_multilabel"])
def test_weights_go_to_the_configured_device(settings: dict[str, dict[str, Any]], factory: str) -> None:
    """The device `meta` exists on any machine and holds no numbers."""
    pipe = spacy.blank("en").add_pipe(factory, config=settings[factory] | {"device": "meta"})
    assert all(find_device_types(pipe, part) == {"meta"} for part in pipe.parts)


def test_a_missing_device_is_rejected(runs: dict[str, Path], tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    with pytest.raises(ConfigError, match="spen_ner: device 'warp:9'"):
        nlp.add_pipe("spen_ner", config={"model": str(runs["ner"]), "device": "warp:9"})
    nlp.add_pipe("spen_ner", config={"model": str(runs["ner"])})
    nlp.to_disk(tmp_path)
    config = tmp_path / "config.cfg"
    text = config.read_text()
    assert "device = null" in text
    config.write_text(text.replace("device = null", 'device = "warp:9"'))
    with pytest.raises(ConfigError, match="device 'warp:9': no such device; expected cpu, cuda, cuda:1 or mps"):
        spacy.load(tmp_path)
    assert spacy.load(tmp_path, config={"components.spen_ner.device": "cpu"})("Anna sleeps.").ents
