"""Pretrained encoders, stored apart from their runs, so that several runs share one copy of equal encoders.

    PIPELINE/encoders/0123456789abcdef.safetensors   an encoder's weights
    PIPELINE/COMPONENT/PART/encoders.json            a run's encoder files, by the encoders' names in its model
    PIPELINE/assets/0123456789abcdef                 a folder of assets (tokenisers); a run alone has them in assets/
    PIPELINE/COMPONENT/PART/assets.json              the name of a run's folder of assets

In 16 bits, a table of embeddings has 8-bit rows, each with a scale: the scales' name is the table's plus `SCALES`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from spen_plugins.errors import RunError
from spen_plugins.features import FeatureNetwork
from spen_plugins.files import make_folder, read_json, read_tensors, save_json, save_tensors, writing_folder
from spen_plugins.runs.folder.weights import narrow

INDEX = "encoders.json"
FOLDER = "encoders"
ASSETS = "assets"
SCALES = ".row_scales"
ROWS = 256
"""Minimum number of rows of a table of embeddings that is stored in 8 bits."""
_DIGEST = re.compile(r"[0-9a-f]{16}")
_FILE = re.compile(rf"{_DIGEST.pattern}\.safetensors")


def take_out(tensors: dict[str, Tensor], nets: nn.Module, run: Path, half: bool) -> dict[str, str]:
    """Move the encoders' tensors out of a model's tensors into separate files, each written once.

    Args:
        tensors: the model's tensors by name; those of encoders are removed.
        nets: the model.
        run: the run's folder, PIPELINE/COMPONENT/PART.
        half: if true, tables of embeddings have 8-bit rows, and other floats 16 bits.

    Returns:
        The names of the files, by the encoders' names in the model.
    """
    files = {}
    encoders = {id(part.shared_part()) for part in nets.modules() if isinstance(part, FeatureNetwork)} - {id(None)}
    for name, part in nets.named_modules():
        if id(part) in encoders:
            encoder_tensors = {
                key[len(name) + 1 :]: tensors.pop(key) for key in list(tensors) if key.startswith(f"{name}.")
            }
            if encoder_tensors:
                files[name] = _save(_shrink(encoder_tensors, part) if half else encoder_tensors, _locate_folder(run))
    return files


def read(run: Path) -> dict[str, Tensor]:
    """The tensors of a run's separately stored encoders, by their names in the model; empty if it has none."""
    tensors: dict[str, Tensor] = {}
    for name, file in _read_index(run).items():
        path = _locate_folder(run) / file
        try:
            stored_tensors, _ = read_tensors(path)
        except FileNotFoundError:
            raise RunError(
                f"found no file {path}, the encoder of {run}; copy the whole folder of its pipeline"
            ) from None
        tensors |= {f"{name}.{key}": value for key, value in _widen(stored_tensors).items()}
    return tensors


def _read_index(run: Path) -> dict[str, str]:
    """The files of a run's separately stored encoders, by their names in the model; empty if it has none."""
    path = run / INDEX
    index = read_json(path) if path.exists() else {}
    if not all(_FILE.fullmatch(str(file)) for file in index.values()):
        raise RunError(f"{path} is damaged: expected names of files of encoders")
    return index


def save_assets(nets: nn.Module, run: Path) -> None:
    """Write the files that the nets' feature networks need besides weights to a run's folder of assets."""
    for part in nets.modules():
        if isinstance(part, FeatureNetwork):
            part.save_assets(assets(run))


def share_assets(run: Path) -> None:
    """Move a run's assets to the pipeline's folder of assets, unless another run has put equal assets there."""
    folder = run / ASSETS
    if not folder.exists():
        return
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    name = digest.hexdigest()[:16]
    if not (target := _locate_folder(run, ASSETS) / name).exists():
        with writing_folder(target) as temporary_path:
            shutil.copytree(folder, temporary_path, dirs_exist_ok=True)
    shutil.rmtree(folder)
    save_json({"folder": name}, run / f"{ASSETS}.json")


def assets(run: Path) -> Path:
    """The folder of a run's assets, which may not exist."""
    path = run / f"{ASSETS}.json"
    if not path.exists():
        return run / ASSETS
    name = str(read_json(path).get("folder"))
    if not _DIGEST.fullmatch(name):
        raise RunError(f"{path} is damaged: expected the name of a folder of assets")
    return _locate_folder(run, ASSETS) / name


def remove_unused(pipeline: Path) -> None:
    """Remove the encoders and assets that no run of a pipeline names any more; nothing while a run's index is damaged.

    A linked folder of encoders or assets may belong to other pipelines, and is left alone.
    """
    runs = {path.parent for name in (INDEX, f"{ASSETS}.json") for path in pipeline.glob(f"*/*/{name}")}
    try:
        used_paths = {_locate_folder(run) / file for run in runs for file in _read_index(run).values()} | {
            assets(run) for run in runs
        }
    except RunError:
        return
    folders = [folder for folder in (pipeline / FOLDER, pipeline / ASSETS) if not folder.is_symlink()]
    for path in [path for folder in folders for path in folder.glob("*")]:
        if path.absolute() not in used_paths and (_FILE.fullmatch(path.name) or _DIGEST.fullmatch(path.name)):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _locate_folder(run: Path, name: str = FOLDER) -> Path:
    return run.absolute().parent.parent / name


def _shrink(tensors: Mapping[str, Tensor], encoder: nn.Module) -> dict[str, Tensor]:
    """An encoder's tensors in 8 and 16 bits."""
    table_names = {f"{name}.weight" for name, part in encoder.named_modules() if isinstance(part, nn.Embedding)}
    shrunk_tensors = {}
    for name, tensor in tensors.items():
        if name in table_names and len(tensor) >= ROWS and tensor.is_floating_point():
            shrunk_tensors[name], shrunk_tensors[name + SCALES] = round_rows(tensor.detach())
        else:
            shrunk_tensors[name] = narrow(tensor.detach(), torch.float16)
    return shrunk_tensors


def round_rows(table: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix as integers from −127 to 127, and each row's scale: a row is its integers times its scale."""
    table = table.float()
    scales = table.abs().amax(1) / 127
    numbers = (table / scales.clamp(min=torch.finfo(torch.float32).tiny).unsqueeze(1)).round().clamp(-127, 127)
    return numbers.to(torch.int8), scales


def _widen(stored_tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Stored tensors; 8-bit tensors are converted to float32."""
    tensors = {name: tensor for name, tensor in stored_tensors.items() if not name.endswith(SCALES)}
    for name in tensors:
        if (scales := stored_tensors.get(name + SCALES)) is not None:
            tensors[name] = tensors[name].float().mul_(scales.unsqueeze(1))
    return tensors


def _save(tensors: Mapping[str, Tensor], folder: Path) -> str:
    """Write tensors to a file named after its content, unless it exists; returns the name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    file = f"{digest.hexdigest()[:16]}.safetensors"
    make_folder(folder)
    if not (folder / file).exists():
        save_tensors(dict(tensors), folder / file)
    return file
