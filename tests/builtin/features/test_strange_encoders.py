"""Truncated and strange encoder folders are rejected with an error; attention is ours, and nothing is downloaded."""

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


def change_settings(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def overwrite(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(data) and None


def change_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
        change(tensors)
        save_file(tensors, path, {"format": "pt"})

    return damage


def truncate(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return damage


def replace_by_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


WORDS = "embeddings.word_embeddings.weight"
LAST = "encoder.layer.1.output.dense.weight"
STRANGE = {
    "cut weights": (truncate("model.safetensors"), "."),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors"),
    "a pickle": (replace_by_pickle, r"model\.safetensors"),
    "cut config": (truncate("config.json"), r"config\.json"),
    "empty config": (overwrite("config.json", b""), r"config\.json"),
    "a list": (overwrite("config.json", b"[]"), "model_type"),
    "deep config": (overwrite("config.json", b'{"a":' * 100_000), "."),
    "empty table": (overwrite("config.json", b"{}"), "."),
    "deep tokeniser": (overwrite("tokenizer.json", b"[" * 100_000), "."),
    "strange tokeniser": (overwrite("tokenizer.json", b'{"model": {"type": "None"}}'), "."),
    "tokeniser's settings": (overwrite("tokenizer_config.json", b"[1]"), "."),
    "type": (change_settings(model_type="nothing"), "nothing"),
    "code": (
        change_settings(model_type="mine", auto_map={"AutoConfig": "mine.Mine"}),
        "custom code, which is never run",
    ),
    "no heads": (change_settings(num_attention_heads=0), "."),
    "text": (change_settings(hidden_size="16"), "."),
    "list": (change_settings(vocab_size=[3]), "."),
    "negative": (change_settings(hidden_size=-16), "."),
    "other size": (change_settings(hidden_size=32), "."),
    "missing layer": (change_settings(num_hidden_layers=3), "found no weights for encoder.layer.2"),
    "memory": (change_settings(hidden_size=10**12), "."),
    "activation": (change_settings(hidden_act="nothing"), "."),
    "padding": (change_settings(pad_token_id=10**6), "."),
    "positions": (change_settings(max_position_embeddings="many"), "."),
    "quantised": (change_settings(quantization_config={"quant_method": "bitsandbytes"}), "quantised"),
    "NaN": (change_weights(lambda w: w[LAST].fill_(torch.nan)), f"numbers in {LAST} that are NaN or infinite"),
    "one lacks": (change_weights(lambda w: w.pop(LAST)), f"found no weights for {LAST}"),
    "fewer words": (change_weights(lambda w: w.update({WORDS: w[WORDS][:3]})), "."),
    "more pieces": (
        overwrite("vocab.txt", "\n".join(f"w{i}" for i in range(99)).encode()),
        "pieces in the tokeniser and 14 in the encoder",
    ),
}


@pytest.mark.parametrize(("damage", "message"), STRANGE.values(), ids=STRANGE)
def test_a_strange_folder_is_a_config_error(model: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(model)
    with pytest.raises(ConfigError, match=rf"(?s)features\.model: found .*could not be loaded \(.*{message}") as error:
        load(str(model))
    assert "\n" not in str(error.value)


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
def test_attention_is_ours_and_code_is_never_run(model: Path, tmp_path: Path, values: dict[str, object]) -> None:
    change_settings(**values)(model)
    (model / "code.py").write_text("raise AssertionError('code was run')\n")
    (model / "adapter_config.json").write_text('{"base_model_name_or_path": "somebody/else", "peft_type": "LORA"}')
    for attention in ("eager", "sdpa"):
        encoder, _ = load(str(model), attention)
        configs = [encoder.config, *(part.config for part in encoder.modules() if hasattr(part, "config"))]
        assert {config._attn_implementation for config in configs} == {attention}
        encoder.config.save_pretrained(tmp_path / attention)  # as runs do


@pytest.mark.parametrize("path", ["./missing", "../missing", "/missing/model"])
def test_a_path_without_a_folder_is_not_looked_up_on_the_hub(path: str) -> None:
    message = rf"features\.model: found {path!r}, which does not exist; expected a folder made by save_pretrained"
    with pytest.raises(ConfigError, match=message):
        load(path)


def test_a_misspelt_short_name_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no such model")

    monkeypatch.setattr("spen_plugins.builtin.features.pretrained._read", fail)
    with pytest.raises(ConfigError, match=r"found 'minlm', which could not be loaded .*Did you mean 'minilm'\?"):
        load("minlm")


def test_the_encoder_of_a_run_is_not_initialised_and_keeps_tied_weights(tmp_path: Path, monkeypatch) -> None:
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = BartConfig(vocab_size=20, max_position_embeddings=20, pad_token_id=1, **sizes, **heads)
    BartModel(config).save_pretrained(tmp_path)
    words = WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, unk_token="<unk>")
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), pad_token="<pad>").save_pretrained(tmp_path)
    full, _ = load(str(tmp_path))
    (tmp_path / WEIGHTLESS).touch()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("weights are drawn")

    monkeypatch.setattr(torch.nn.init, "normal_", refuse)
    empty, _ = load(str(tmp_path))
    assert empty.encoder.embed_tokens.weight is empty.decoder.embed_tokens.weight is empty.shared.weight
    assert [*dict(empty.named_parameters())] == [*dict(full.named_parameters())]
    assert not any(weight.any() for weight in empty.parameters())
    for (name, buffer), expected_buffer in zip(empty.named_buffers(), full.buffers(), strict=True):
        assert torch.equal(buffer, expected_buffer), name
