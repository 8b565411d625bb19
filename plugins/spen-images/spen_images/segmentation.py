"""Task `segmentation`: from an image to the binary mask of an object in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_images import images, masks
from spen_images.image_task import ImageTask
from spen_images.images import WHITE

DEFINITIONS = {
    "metric": (
        "IoU of each image, |y and gold| / |y or gold| of masks cut at 0.5, 1 where both are empty, then the mean over "
        "images"
    ),
    "pixel_accuracy": "share of right pixels, of all pixels of all images",
}


class Example(NamedTuple):
    """An image, with or without its mask."""

    name: str
    image: np.ndarray
    """Levels from 0 to 255, `(row, column)` or `(row, column, 3)`."""
    mask: np.ndarray | None
    """0 and 1, `(row, column)`; None without gold."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.image.shape[:2]


class Segmentation(ImageTask):
    """Binary masks of images; pixels of `X.inputs["image"]` are standardised, channel by channel, by the mean and the
    deviation of the training part."""

    selection, key, digits = "iou", "mask", 6
    space: sp.BinaryGrid
    inputs: sp.ImageInputs
    file_has_parts = True

    class Config(sp.Config):
        corpus: Literal["sample"] | None = None
        """"sample": synthetic images of the package; null: the files below."""
        file: str | None = None
        """A .npz file with all parts: uint8 arrays `train_images` `(image, row, column, 3)`, in grey without the 3,
        `train_masks` `(image, row, column)` of 0 and 1 or of 0 and 255, and so `validation_` (or `val_`), `test_`."""
        train: str | None = None
        """A .npz file with the training part alone: `images` and `masks`, or the same names as above."""
        validation: str | None = None
        """A .npz file with the validation part."""
        test: str | None = None
        """A .npz file with the test part."""
        shift: int = Field(0, ge=0)
        """Maximal number of rows and columns by which a training image is shifted, anew in each epoch; its border is
        repeated."""
        flips: bool = True
        """If true, half of the training images, each epoch others, are mirrored, left to right."""
        brightness: float = Field(0.0, ge=0, le=1)
        """Largest change of a training image's brightness, as a share of white."""
        contrast: float = Field(0.0, ge=0, lt=1)
        """Largest relative change of a training image's contrast."""

    def load(self) -> None:
        c = self.config
        self.space = sp.BinaryGrid()
        part_keys = [key for key in sp.PARTS if getattr(c, key) is not None]
        if sum((c.corpus is not None, c.file is not None, bool(part_keys))) > 1:
            raise sp.ConfigError(
                "task: found several of corpus, file and train, validation, test; use one of them (data=FILE)"
            )
        if c.corpus:
            from spen_images import segmentation_sample as sample

            self._split: Any = "the sample's own (synthetic)"
            for part, arrays in sample.make().items():
                self._set_part(part, *arrays)
        elif c.file is not None:
            self._split = f"the parts of {c.file}"
            arrays = self._read_arrays(c.file)
            for part in sp.PARTS:
                self._set_part(part, *masks.check_arrays(sp.locate(c.file), arrays, part))
        elif len(part_keys) == len(sp.PARTS):
            self._split = {part: getattr(c, part) for part in sp.PARTS}
            for part, path in self._split.items():
                arrays = self._read_arrays(path)
                self._set_part(part, *masks.check_arrays(sp.locate(path), arrays, _find_part(arrays, part)))
        else:
            problem = f"only task.{', task.'.join(part_keys)}" if part_keys else "neither corpus nor file"
            raise sp.ConfigError(
                f"task: found {problem}; expected corpus: 'sample', file: a .npz with all parts, or train, validation "
                "and test: one .npz each"
            )
        self._measure_channels()

    def _read_arrays(self, path: str) -> Mapping[str, np.ndarray]:
        self._checksums[path] = sp.sha256(sp.locate(path))
        return masks.read_arrays(sp.locate(path))

    def _set_part(self, part: str, levels: np.ndarray, gold: np.ndarray | None) -> None:
        assert gold is not None
        self._parts[part] = [Example(f"{part}{i:04}", image, gold[i]) for i, image in enumerate(levels)]

    def _measure_channels(self) -> None:
        """Sets the kind of the images, and the training part's mean and deviation of each channel."""
        train = self._parts["train"]
        channels = {part: _count_channels(self._parts[part][0].image) for part in sp.PARTS}
        for part, n in channels.items():
            if n != channels["train"]:
                raise sp.DataError(
                    getattr(self.config, part) or self.config.file,
                    None,
                    f"images with {n} channels for {part}",
                    f"{channels['train']}, as in the training part",
                )
        # One image at a time: as float64, all images would need eight times their memory.
        total, squares, count = 0.0, 0.0, 0
        for example in train:
            pixels = example.image.reshape(-1, channels["train"]) / WHITE
            total, squares, count = total + pixels.sum(0), squares + (pixels**2).sum(0), count + len(pixels)
        mean = total / count
        self._mean = mean.tolist()
        self._deviation = np.maximum(np.sqrt(np.maximum(squares / count - mean**2, 0)), 1e-3).tolist()
        self.inputs = sp.ImageInputs(channels["train"], smallest=min(train[0].mask.shape))

    def notes(self) -> list[str]:
        train = self._parts["train"]
        state = None
        if not any(example.mask.any() for example in train):
            state = "empty (0 everywhere)"
        elif all(example.mask.all() for example in train):
            state = "full (1 or 255 everywhere)"
        return [f"warning: every training mask is {state}; there is nothing to learn"] if train and state else []

    def augment(self, example: Example, rng: np.random.Generator) -> Example:
        """A shift, a mirror image and other light, all drawn from `rng`; the mask moves with its image."""
        c, image, mask = self.config, example.image, example.mask
        assert mask is not None
        if c.flips and rng.random() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        if c.shift:
            top, left = rng.integers(-c.shift, c.shift + 1, 2)
            rows = np.arange(mask.shape[0]) + top
            columns = np.arange(mask.shape[1]) + left
            places = np.ix_(rows.clip(0, mask.shape[0] - 1), columns.clip(0, mask.shape[1] - 1))
            image, mask = image[places], mask[places]
        if c.contrast or c.brightness:
            change = 1 + c.contrast * rng.uniform(-1, 1)
            middle = image.mean()
            light = middle + WHITE * c.brightness * rng.uniform(-1, 1)
            image = ((image - middle) * change + light).clip(0, WHITE).astype(np.float32)
        return Example(example.name, image, mask)

    def pixels(self, example: Example) -> tuple[np.ndarray, np.ndarray | None]:
        levels = np.asarray(example.image, np.float32).reshape(*example.shape, -1) / WHITE
        mean, deviation = (np.array(values, np.float32) for values in (self._mean, self._deviation))
        return (levels - mean) / deviation, example.mask

    def measure(self, proposal: sp.Proposal, batch: sp.Batch) -> dict[str, Tensor]:
        y, gold = (y.detach().cpu().double() for y in (self.decode(proposal, batch.x), batch.gold))
        space, mask = self.space, None if batch.x.mask is None else batch.x.mask.cpu()
        measures = space.score(y, gold, mask), space.size(gold, mask), space.cost(y, gold, mask)
        return {name: values[:, 0] for name, values in zip(("iou", "pixels", "wrong"), measures, strict=True)}

    def summarise(self, measured: dict[str, Tensor]) -> dict[str, Any]:
        iou, pixels, wrong = measured.values()
        return {"iou": iou.mean().item(), "pixel_accuracy": ((pixels - wrong).sum() / pixels.sum()).item()}

    def read(self, path: str) -> list[Example]:
        """A .npz file with `images` and optional `masks`, or the test part of one with all parts; or an image, or a
        folder of images, without masks: PNG or JPEG."""
        file = sp.locate(path)
        if file.suffix.lower() != ".npz":
            files = images.list_images(file)
            return [Example(f.name, images.read_image(f, self.inputs.channels), None) for f in files]
        arrays = masks.read_arrays(file)
        levels, gold = masks.check_arrays(file, arrays, _find_part(arrays, "test"), need_masks=False)
        if _count_channels(levels[0]) != self.inputs.channels:
            expected = f"{self.inputs.channels}, as in training"
            raise sp.DataError(file, None, f"images with {_count_channels(levels[0])} channels", expected)
        return [Example(f"{i:04}", image, None if gold is None else gold[i]) for i, image in enumerate(levels)]

    def parse(self, item: Any) -> Example:
        """`{"image": …}`: rows of levels from 0 to 255 (lists or an array, `(row, column, 3)` in colours), a PNG in
        base64, or a path. Optional: `"mask"`, 0 and 1 in rows or 0 and 255 in a PNG (gold), and `"name"`.

        A text or an array alone is such an image.
        """
        item = item if isinstance(item, Mapping) else {"image": item}
        if item.get("image") is None:
            raise sp.DataError("input", None, f"{item!r:.80}", '{"image": rows of levels, a PNG in base64, or a path}')
        image, name = images.read_value(item["image"], self.inputs.channels)
        mask = None if item.get("mask") is None else to_mask(item["mask"], image.shape[:2])
        return Example(str(item.get("name", name)), image, mask)

    def facts(self) -> dict[str, Any]:
        return {
            "channels": self.inputs.channels,
            "smallest": self.inputs.smallest,
            "mean": self._mean,
            "deviation": self._deviation,
            "split": self._split,
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        self.space = sp.BinaryGrid()
        channels, self._split = int(sp.number(facts, "channels")), facts["split"]
        self.inputs = sp.ImageInputs(channels, smallest=int(sp.number(facts, "smallest")))
        self._mean, self._deviation = sp.numbers(facts, "mean", channels), sp.numbers(facts, "deviation", channels)

    def protocol(self) -> dict[str, Any]:
        return {**DEFINITIONS, "split": self._split, "threshold": 0.5}


def _count_channels(image: np.ndarray) -> int:
    return 1 if image.ndim == 2 else image.shape[2]


def _find_part(arrays: Mapping[str, np.ndarray], part: str) -> str | None:
    """None if a file has `images` without a part; otherwise the part."""
    return None if "images" in arrays else part


def to_mask(value: Any, size: tuple[int, ...]) -> np.ndarray:
    """A mask in a form of `Segmentation.parse` and of this size, as 0 and 1; `DataError` for anything else."""
    if isinstance(value, (str, Path)):
        mask = images.read_text(value)[0]
    else:
        try:
            mask = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value, np.float32)
        except (TypeError, ValueError):
            expected = "rows of 0 and 1, a PNG in base64, or a path"
            raise sp.DataError("input", None, f"mask {value!r:.60}", expected) from None
    if mask.shape != tuple(size):
        raise sp.DataError("input", None, f"a mask of shape {mask.shape}", f"{tuple(size)}, as the image")
    return masks.to_binary(mask, "input", "the mask")
