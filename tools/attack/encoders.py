"""Damaged and hostile folders of pretrained encoders."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import inputs
import run_folders
from tries import Ended, Try, command, scores_of
from warm import Warm, spen_run

TOTAL = 200

KEYS: dict[str, tuple[object, ...]] = {
    "_attn_implementation": ("sdpa", "flash_attention_2", "kernels-community/flash-attn", "nonsense", 3),
    "attn_implementation": ("kernels-community/flash-attn", "flash_attention_2"),
    "auto_map": ({"AutoModel": "evil--evil.Evil"}, {"AutoModel": "code.Evil", "AutoConfig": "code.Evil"}),
    "model_type": ("nonsense", "gpt2", "t5", "", None, 3),
    "architectures": (["Nonsense"], [], None, "BertModel"),
    "vocab_size": (0, -1, 1, "many"),
    "hidden_size": (0, 7),
    "num_hidden_layers": (0, -1),
    "num_attention_heads": (0, 3),
    "max_position_embeddings": (0, 1),
    "torch_dtype": ("float64", "int8", "nonsense", "bfloat16"),
    "dtype": ("float16", "nonsense"),
    "hidden_act": ("nonsense", None),
    "quantization_config": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {}),
    "is_decoder": (True,),
    "output_attentions": (True,),
    "pad_token_id": (-1, 10**6, None),
}
"""Values for keys of a model's config.json."""


def make(folder: Path) -> Path:
    """A BERT of two layers with a vocabulary for the inputs."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = sorted({*inputs.WORDS, *inputs.LABELS})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    return folder


def make_try(warm: Warm, encoder: Path, name: str, draw: random.Random) -> Try:
    """Training over a damaged copy of the encoder."""
    config = draw.choice(("tags", "texts", "names"))
    files = sorted(path.name for path in encoder.iterdir())
    key, file = draw.choice(sorted(KEYS)), draw.choice(files)
    value = draw.choice(KEYS[key])
    changes_key = draw.random() < 0.6
    damage = draw.choice(run_folders.DAMAGES)
    damage_seed = draw.random()

    def act(folder: Path) -> None:
        copy = folder / "encoder"
        shutil.copytree(encoder, copy)
        (copy / "code.py").write_text("print('code of the folder was run')\n", encoding="utf-8")
        if changes_key:
            path = copy / "config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}), encoding="utf-8")
        else:
            damage(copy / file, random.Random(damage_seed))
        command(spen_run, *warm.words(config), f"encoder={copy}", "method=cross_entropy")

    def check(folder: Path, end: Ended) -> str | None:
        if "code of the folder was run" in end.said:
            return "code of the folder was run"
        return scores_of(folder / "run") if end.status == 0 else None

    change = f"{key}={value}"[:40] if changes_key else f"{damage.__name__.strip('_')}-{file}"
    return Try(f"{name}-{change}".replace("/", "_").replace(" ", ""), act, check)
