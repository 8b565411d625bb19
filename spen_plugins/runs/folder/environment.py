"""The environment of a result: versions, seed, commit, data."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.data.catalogue import locate
from spen_plugins.data.text import sha256

if TYPE_CHECKING:
    from spen_plugins.model import Model

FORMAT = 3
"""Version of a run folder's files and of the configs in them; other versions are rejected."""

PACKAGES = ("spen-plugins", "torch", "numpy", "transformers", "allennlp-light", "accelerate", "safetensors", "peft")


def environment(
    seed: int,
    device: str,
    plugins: Mapping[str, str],
    data: Mapping[str, str],
    files: Mapping[str, str],
    source: str,
) -> dict[str, Any]:
    """The environment of a run: everything its result depends on besides its config.

    `data` are sha256 of the task's files, `files` those of others. Runs that differ only in `files` have the same
    scored data.
    """
    return {
        "format": FORMAT,
        "source": source,
        "working_folder": str(Path.cwd()),
        "seed": seed,
        "device": device,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(device),
        "packages": packages(),
        "plugins": dict(plugins),
        **read_git_state(),
        "data_sha256": dict(data),
        "files_sha256": dict(files),
    }


def changed_files(sums: Mapping[str, str]) -> list[str]:
    """Names of files whose sha256 has changed; folders and missing files are skipped."""
    files = {name: file for name in sums if (file := locate(name)).is_file()}
    return [name for name, file in files.items() if sha256(file) != sums[name]]


def packages() -> dict[str, str | None]:
    """Versions of the packages that affect a result."""
    return {name: _read_version(name) for name in PACKAGES}


def count_parameters(model: Model) -> dict[str, int]:
    """Numbers of trained parameters by net; `trained` is the total, `inference` the part that prediction needs.

    Fixed tensors, such as untuned word vectors, don't count. A shared parameter counts for the first net that has it.
    """
    counted_ids: set[int] = set()
    counts = {}
    for name, net in model.named_children():
        sizes = {id(p): p.numel() for p in net.parameters() if p.requires_grad and id(p) not in counted_ids}
        counted_ids |= sizes.keys()
        counts[name] = sum(sizes.values())
    predicting_nets = ("inference_net", "energy") if model.inference_net.uses_energy else ("inference_net",)
    totals = {"trained": sum(counts.values()), "inference": sum(counts.get(name, 0) for name in predicting_nets)}
    return counts | totals


def processor(device: str) -> str:
    """The name of the GPU that a run trains on, or else of the CPU."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _read_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def read_git_state() -> dict[str, Any]:
    """The working folder's commit, and true if its tracked files differ from it; None without a commit."""
    commit = _run_git("rev-parse", "HEAD")
    changes = _run_git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no") if commit else None
    return {"git_commit": commit or None, "git_dirty": None if changes is None else changes != ""}


def _run_git(*arguments: str) -> str | None:
    """The output of a command of git; None if it fails."""
    try:
        result = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
