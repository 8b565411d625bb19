"""Plugins with a mistake: in their import, their hook, their classes or any method of a component."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from tries import Ended, Try, command, scores_of
from warm import Warm, spen, spen_run

TOTAL = 600
HEAD = "import torch, spen_plugins as sp\n"
SOUND = {
    "energy": "from spen_seal.labels import Labels as Sound",
    "inference_net": "from spen_plugins.builtin.nets.basic import Independent as Sound",
    "energy_loss": "from spen_seal.contrast import Nce as Sound",
    "trainer": "from spen_seal.dynamic import Dynamic as Sound",
}
"""A component without mistakes, by kind."""
METHODS = {
    "energy": "__init__ forward encode gradient",
    "inference_net": "__init__ forward training_proposal choices",
    "energy_loss": "__init__ forward terms net_terms measures",
    "trainer": "__init__ stages protocol",
}
BODIES = (
    "pass", "return 3", "return 'text'", "return []", "return {}", "return torch.zeros(())", "return torch.zeros(7, 7)",
    "return self", "return {'mine': None}", "return {'mine': torch.zeros(7)}", "return {3: torch.zeros(1)}",
    "return torch.tensor(float('nan'))", "raise ValueError('x')", "raise KeyError('[red]x')", "raise RuntimeError()",
    "raise StopIteration", "raise NotImplementedError", "raise OSError(28, 'No space left')", "raise MemoryError()",
)  # fmt: skip
MODULES = (
    "raise ValueError('x')", "import nothing_like_it", "def (", "import sys; sys.exit(0)", "\0", "x = '\udc80'",
    "1 / 0",    "from spen_plugins import NothingLikeIt", "def __getattr__(name): raise KeyError(name)", "sp = None",
)  # fmt: skip
TABLES = (
    "{'broken': 3}", "{'broken': None}", "{'broken': int}", "{'broken': 'nothing:Like'}", "{'broken': 'json:dumps'}",
    "{'broken': sp.Energy}", "{'broken': ''}", "None", "3", "[Broken]", "{3: Broken}", "{'a b': Broken}", "1 / 0",
)  # fmt: skip
FIELDS = ("a: int = 'x'", "a: object", "a: 'Nothing' = 1", "a: int", "type: int = 3", "a = 3")


def _write_source(kind: str, draw: random.Random) -> tuple[str, str]:
    """The mistake in words, and the plugin's module."""
    parts = [
        HEAD,
        f"{SOUND[kind]}\nclass Broken(Sound):\n    pass\n",
        f"@sp.hookimpl\ndef spen_{kind}(): return ",
        "{'broken': Broken}\n",
    ]
    place = draw.choice(("module", "hook", "config", *["method"] * 5))
    if place == "module":
        mistake = draw.choice(MODULES)
        parts.insert(draw.choice((1, 4)), f"{mistake}\n")
    elif place == "hook":
        mistake = parts[3] = draw.choice(TABLES)
    elif place == "config":
        mistake = draw.choice(FIELDS)
        parts[1] += f"    class Config(Sound.Config):\n        {mistake}\n"
    else:
        mistake = f"def {draw.choice(METHODS[kind].split())}(self, *given, **named): {draw.choice(BODIES)}"
        parts[1] += f"    {mistake}\n"
    return mistake, "".join(parts)


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """A plugin with a mistake, which `spen plugins --check` or a run finds."""
    kind = draw.choice(sorted(SOUND))
    mistake, source = _write_source(kind, draw)
    is_checked = draw.random() < 0.2
    words = [word for word in warm.words("labels") if not word.startswith("trainer.")]
    epochs = {"epochs": 3} if kind == "trainer" else {}
    words += [f"{kind}={json.dumps({'type': 'broken.broken'} | epochs)}", *["trainer.epochs=3"] * (not epochs)]

    def act(folder: Path) -> None:
        info = folder / "site" / "broken-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[spen_plugins]\nbroken = broken_plugin\n")
        (folder / "site" / "broken_plugin.py").write_text(source, encoding="utf-8", errors="surrogatepass")
        sys.path.insert(0, str(folder / "site"))
        print(f"plugin with an error: {mistake!r}", flush=True)  # the output of --check is a table
        command(spen, "plugins", "--check") if is_checked else command(spen_run, *words)

    def check(folder: Path, end: Ended) -> str | None:
        if end.status == 0:
            return None if is_checked else scores_of(folder / "run")
        output = end.said.partition("\n")[2]
        if not any(word in output.lower() for word in ("broken", kind, kind.replace("_", " "))):
            return f"the message names neither plugin nor class: {end.said.strip()[-200:]}"
        history = folder / "run" / "history.jsonl"
        return "the mistake was found after an epoch" if history.is_file() and history.stat().st_size else None

    return Try(f"{name}-{kind}-" + "".join(c if c.isalnum() else "_" for c in mistake)[:80], act, check)
