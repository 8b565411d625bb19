"""Truncated and strange encoder folders are refused in a sentence; attention is ours, and nothing is fetched."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import BartConfig, BartModel, PreTrainedTokenizerFast

from spen_plugins.builtin.features.pretrained import WEIGHTLESS, load
from spen_plugins.errors import ConfigError
from tests.builtin.features.test_encoders import save_model

KERNEL = "kernels-community/flash-attn"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder, on a machine without a network."""

    def refuse(*_: object) -> None:
        raise AssertionError("something is fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    save_model(tmp_path)
    return tmp_path


def settings(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def written(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(data) and None


def weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
        change(tensors)
        save_file(tensors, path, {"format": "pt"})

    return damage


def cut(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return damage


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


WORDS = "embeddings.word_embeddings.weight"
LAST = "encoder.layer.1.output.dense.weight"
STRANGE = {
    "cut weights": (cut("model.safetensors"), "."),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors"),
    "a pickle": (pickled, r"model\.safetensors"),
    "cut config": (cut("config.json"), r"config\.json"),
    "empty config": (written("config.json", b""), r"config\.json"),
    "a list": (written("config.json", b"[]"), "model_type"),
    "deep config": (written("config.json", b'{"a":' * 100_000), "."),
    "empty table": (written("config.json", b"{}"), "."),
    "deep tokeniser": (written("tokenizer.json", b"[" * 100_000), "."),
    "strange tokeniser": (written("tokenizer.json", b'{"model": {"type": "None"}}'), "."),
    "tokeniser's settings": (written("tokenizer_config.json", b"[1]"), "."),
    "type": (settings(model_type="nothing"), "nothing"),
    "code": (settings(model_type="mine", auto_map={"AutoConfig": "mine.Mine"}), "custom code, which is never run"),
    "no heads": (settings(num_attention_heads=0), "."),
    "text": (settings(hidden_size="16"), "."),
    "list": (settings(vocab_size=[3]), "."),
    "negative": (settings(hidden_size=-16), "."),
    "other size": (settings(hidden_size=32), "."),
    "missing layer": (settings(num_hidden_layers=3), "found no weights for encoder.layer.2"),
    "memory": (settings(hidden_size=10**12), "."),
    "activation": (settings(hidden_act="nothing"), "."),
    "padding": (settings(pad_token_id=10**6), "."),
    "positions": (settings(max_position_embeddings="many"), "."),
    "quantised": (settings(quantization_config={"quant_method": "bitsandbytes"}), "quantised"),
    "NaN": (weights(lambda w: w[LAST].fill_(torch.nan)), f"numbers in {LAST} that are NaN or infinite"),
    "one lacks": (weights(lambda w: w.pop(LAST)), f"found no weights for {LAST}"),
    "fewer words": (weights(lambda w: w.update({WORDS: w[WORDS][:3]})), "."),
    "more pieces": (
        written("vocab.txt", "\n".join(f"w{i}" for i in range(99)).encode()),
        "pieces in the tokeniser and 14 in the encoder",
    ),
}


@pytest.mark.parametrize(("damage", "says"), STRANGE.values(), ids=STRANGE)
def test_a_strange_folder_is_a_sentence(model: Path, damage: Callable[[Path], None], says: str) -> None:
    damage(model)
    with pytest.raises(ConfigError, match=rf"(?s)features\.model: found .*could not be loaded \(.*{says}") as caught:
        load(str(model))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"_attn_implementation": KERNEL},
        {"attn_implementation": KERNEL},
        {"_attn_implementation": "sdpa", "_attn_implementation_autoset": True},
        {"_attn_implementation_internal": KERNEL},
        {"auto_map": {"AutoModel": "code.Mine", "AutoConfig": "somebody/else--code.Mine"}},
        {"_name_or_path": "somebody/else"},
        {"output_attentions": True},
    ],
)
def test_attention_is_ours_and_code_is_left_alone(model: Path, tmp_path: Path, values: dict[str, object]) -> None:
    settings(**values)(model)
    (model / "code.py").write_text("raise AssertionError('code was run')\n")
    (model / "adapter_config.json").write_text('{"base_model_name_or_path": "somebody/else", "peft_type": "LORA"}')
    for attention in ("eager", "sdpa"):
        encoder, _ = load(str(model), attention)
        configs = [encoder.config, *(part.config for part in encoder.modules() if hasattr(part, "config"))]
        assert {config._attn_implementation for config in configs} == {attention}
        encoder.config.save_pretrained(tmp_path / attention)  # as a run does


@pytest.mark.parametrize("path", ["./missing", "../missing", "/missing/model"])
def test_a_path_of_no_folder_is_no_name_on_the_hub(path: str) -> None:
    found = rf"features\.model: found {path!r}, which does not exist; expected a folder made by save_pretrained"
    with pytest.raises(ConfigError, match=found):
        load(path)


def test_a_misspelt_short_name_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no such model")

    monkeypatch.setattr("spen_plugins.builtin.features.pretrained._read", fails)
    with pytest.raises(ConfigError, match=r"found 'minlm', which could not be loaded .*Did you mean 'minilm'\?"):
        load("minlm")


def test_a_run_folders_encoder_is_not_drawn_and_keeps_its_tied_weights(tmp_path: Path, monkeypatch) -> None:
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = BartConfig(vocab_size=20, max_position_embeddings=20, pad_token_id=1, **sizes, **heads)
    BartModel(config).save_pretrained(tmp_path)
    words = WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, unk_token="<unk>")
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), pad_token="<pad>").save_pretrained(tmp_path)
    whole, _ = load(str(tmp_path))
    (tmp_path / WEIGHTLESS).touch()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("weights are drawn")

    monkeypatch.setattr(torch.nn.init, "normal_", refuse)
    empty, _ = load(str(tmp_path))
    assert empty.encoder.embed_tokens.weight is empty.decoder.embed_tokens.weight is empty.shared.weight
    assert [*dict(empty.named_parameters())] == [*dict(whole.named_parameters())]
    assert not any(weight.any() for weight in empty.parameters())
    for (name, ours), theirs in zip(empty.named_buffers(), whole.buffers(), strict=True):
        assert torch.equal(ours, theirs), name
