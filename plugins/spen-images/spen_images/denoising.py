"""Task `denoising`: from a grayscale image with Gaussian noise to the image without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_images import images
from spen_images.denoising_values import DEFINITIONS, Example, psnr, squared_error
from spen_images.image_task import ImageTask
from spen_images.images import WHITE


class Denoising(ImageTask, sp.ReadsInputs):
    """Removal of Gaussian noise from grayscale images; pixels of `X.inputs["image"]` and y are 0 black to 1 white.

    Noise of the validation and the test part is fixed; training crops, symmetries and noise are drawn anew in every
    epoch (`augment`).
    """

    selection, unit, key, digits = "psnr", "dB", "image", 4
    lower_is_better = ("rmse",)
    space: sp.RealGrid
    inputs: sp.ImageInputs

    class Config(sp.Config):
        corpus: Literal["sample"] | None = None
        """"sample": synthetic images of the package; null: the files below."""
        train: str | None = None
        """Folder of PNG or JPEG files, or one such file, for training: grayscale, 8 bits, without noise."""
        validation: str | None = None
        """Folder or file of the validation part; null: the last `held_out` images of `train`, by name."""
        test: str | None = None
        """Folder or file of the test part."""
        held_out: int = Field(20, ge=1)
        """Number of images of `train` that are the validation part, if `validation` is null."""
        sigma: float = Field(25.0, gt=0)
        """Deviation of the noise, in grey levels (of 255)."""
        crop: int | None = Field(40, ge=1)
        """Rows and columns of a training crop; null: whole images."""
        repeat: int = Field(1, ge=1)
        """Number of crops of each training image in an epoch."""
        flips: bool = True
        """If true, a training crop is turned and mirrored at random: one of 8 symmetries."""
        noise_seed: int = Field(0, ge=0)
        """Seed of the fixed noise."""
        cost_weight: float = Field(0.5, gt=0, lt=1)
        """c in the margin's Δ = c · ½ Σ (y − gold)²; from 1 on, loss-augmented inference would be unbounded."""

    def load(self) -> None:
        c = self.config
        self.space = sp.RealGrid(std=1.0, cost_weight=c.cost_weight)
        if c.corpus:
            self._load_sample()
        else:
            self._load_files()
        train = self._parts["train"]
        sides = min(min(example.shape) for example in train)
        self.inputs = sp.ImageInputs(1, smallest=min(sides, c.crop or sides))
        repeated = [example for example in train for _ in range(c.repeat)]
        self._parts["train"] = [e._replace(seed=self._make_seed("train", row)) for row, e in enumerate(repeated)]

    def _load_sample(self) -> None:
        if any(getattr(self.config, key) is not None for key in sp.PARTS):
            raise sp.ConfigError("task: found corpus: 'sample' and files; use one of the two (data=FOLDER)")
        from spen_images import denoising_sample as sample

        for part, pixels in sample.make().items():
            self._set_part(part, [f"{part}{i:02}" for i in range(len(pixels))], pixels)
        self._split = "the sample's own (synthetic)"
        self._check_crop("the sample")

    def _load_files(self) -> None:
        c = self.config
        if c.train is None:
            raise sp.ConfigError("task: found neither corpus nor train; expected corpus: 'sample', or train: FOLDER")
        for part in sp.PARTS:
            path = getattr(c, part)
            if path is not None:
                self._set_part(part, *self._read_images(path))
                self._checksums[path] = sp.checksum(sp.locate(path))
        train, split = self._parts["train"], f"{c.validation}"
        if c.validation is None:
            if len(train) <= c.held_out:
                raise sp.DataError(
                    sp.locate(c.train),
                    None,
                    f"{len(train)} images, of which task.held_out={c.held_out} would be the validation part",
                    f"more than {c.held_out}, or task.validation",
                )
            held_out = train[-c.held_out :]
            del train[-c.held_out :]
            self._set_part("validation", [e.name for e in held_out], [e.clean for e in held_out])
            split = f"the last {c.held_out} images of {c.train} by name, which are not trained on"
        self._split = {"train": c.train, "validation": split} | ({"test": c.test} if c.test else {})
        self._check_crop(sp.locate(c.train))

    def _check_crop(self, source: object) -> None:
        crop = self.config.crop
        for example in self._parts["train"]:
            if crop is not None and min(example.shape) < crop:
                rows, columns = example.shape
                path = Path(source, example.name) if Path(str(source)).is_dir() else source
                expected = f"at least task.crop={crop} of both; use a smaller crop, or task.crop=null for whole images"
                raise sp.DataError(path, None, f"{rows} rows and {columns} columns", expected)

    def _set_part(self, part: str, names: Sequence[str], pixels: Sequence[np.ndarray | None]) -> None:
        """The examples of a part, with fixed noise."""
        self._parts[part] = [
            Example(name, image, seed=self._make_seed(part, row))
            for row, (name, image) in enumerate(zip(names, pixels, strict=True))
        ]

    def _make_seed(self, part: str, row: int) -> tuple[int, ...]:
        return self.config.noise_seed, sp.PARTS.index(part), row

    def _read_images(self, path: str) -> tuple[list[str], list[np.ndarray]]:
        """Names and images of a folder or a file."""
        files = images.list_images(sp.locate(path))
        return [file.name for file in files], [images.read_image(file) for file in files]

    def augment(self, example: Example, rng: np.random.Generator) -> Example:
        """A crop with a symmetry and noise, all drawn from `rng`. Pixels are not copied."""
        c, image = self.config, example.clean
        if image is None:
            return example
        if c.crop is not None:
            top, left = (int(rng.integers(size - c.crop + 1)) for size in image.shape)
            image = image[top : top + c.crop, left : left + c.crop]
        if c.flips:
            symmetry = int(rng.integers(8))
            image = np.rot90(image.T if symmetry >= 4 else image, symmetry % 4)
        return Example(example.name, image, noise=rng.standard_normal(image.shape, dtype=np.float32))

    def pixels(self, example: Example) -> tuple[np.ndarray, np.ndarray | None]:
        gold = None if example.clean is None else np.asarray(example.clean, np.float32) / WHITE
        return example.input(self.config.sigma)[..., None] / WHITE, gold

    def measure(self, proposal: sp.Proposal, batch: sp.Batch) -> dict[str, Tensor]:
        noisy, y = batch.x.inputs["image"].unsqueeze(1), self.decode(proposal).detach().clamp(0, 1)
        noisy_error, error = (squared_error(image, batch.gold, batch.x.mask) for image in (noisy, y))
        return {"psnr": psnr(error), "psnr_noisy": psnr(noisy_error), "error": error}

    def summarise(self, measured: dict[str, Tensor]) -> dict[str, Any]:
        rmse = 255 * measured["error"].mean().sqrt().item()
        return {name: measured[name].mean().item() for name in ("psnr", "psnr_noisy")} | {"rmse": rmse}

    def read(self, path: str) -> list[Example]:
        """Clean images of a folder or a file, with the noise of a test part."""
        pairs = enumerate(zip(*self._read_images(path), strict=True))
        return [Example(name, image, seed=self._make_seed("test", row)) for row, (name, image) in pairs]

    def read_inputs(self, path: str) -> list[Example]:
        """Noisy images of a folder or a file, as they are."""
        return [Example(name, None, image) for name, image in zip(*self._read_images(path), strict=True)]

    def parse(self, item: Any) -> Example:
        """`{"image": …}`: a noisy image, as rows of grey levels from 0 to 255 (a list or an array), a PNG in base64, or
        a path. Optional: `"clean"`, the image without noise (gold), in the same forms, and `"name"`.

        A text alone is such an image.
        """
        item = {"image": item} if isinstance(item, (str, Path)) else item
        if not isinstance(item, Mapping) or item.get("image") is None:
            raise sp.DataError(
                "input", None, f"{item!r:.80}", '{"image": rows of grey levels, a PNG in base64, or a path}'
            )
        noisy, name = images.read_value(item["image"], noisy=True)
        clean = None if item.get("clean") is None else images.read_value(item["clean"], noisy=True)[0]
        if clean is not None and clean.shape != noisy.shape:
            raise sp.DataError(
                "input", None, f"a clean image of shape {clean.shape}", f"{noisy.shape}, as the noisy image"
            )
        return Example(str(item.get("name", name)), clean, noisy)

    def facts(self) -> dict[str, Any]:
        return {"smallest": self.inputs.smallest, "split": self._split}

    def restore(self, facts: Mapping[str, Any]) -> None:
        self.inputs, self._split = sp.ImageInputs(1, smallest=int(sp.number(facts, "smallest"))), facts["split"]
        self.space = sp.RealGrid(std=1.0, cost_weight=self.config.cost_weight)

    def protocol(self) -> dict[str, Any]:
        c = self.config
        return {
            **DEFINITIONS,
            "noise": f"Gaussian, sigma {c.sigma:g} (of 255), fixed by seed {c.noise_seed}, part and row",
            "split": self._split,
            "threshold": None,
        }
