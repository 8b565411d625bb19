"""Task `segmentation`: from an image to the binary mask of an object in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

import spen_plugins as sp
from spen_images import images, masks
from spen_images.batches import padding_mask
from spen_images.images import WHITE
from spen_images.segmentation_metric import DEFINITIONS, SegmentationMetric
from spen_images.segmentation_values import Example, to_image, to_mask


class Segmentation(sp.Task, sp.Augments):
    """Binary masks of images; pixels of `X.inputs["image"]` are standardised, channel by channel, by the mean and the
    deviation of the training part."""

    selection = "iou"
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
        """Most rows and columns by which a training image is shifted, each epoch anew; its border is repeated."""
        flips: bool = True
        """If true, half of the training images, each epoch others, are mirrored, left to right."""
        brightness: float = Field(0.0, ge=0, le=1)
        """Largest change of a training image's brightness, as a share of white."""
        contrast: float = Field(0.0, ge=0, lt=1)
        """Largest relative change of a training image's contrast."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.space = sp.BinaryGrid()
        self._parts: dict[str, list[Example]] = {part: [] for part in sp.PARTS}
        self._checksums: dict[str, str] = {}

    def load(self) -> None:
        c = self.config
        apart = [key for key in sp.PARTS if getattr(c, key) is not None]
        if sum((c.corpus is not None, c.file is not None, bool(apart))) > 1:
            raise sp.ConfigError(
                "task: found several of corpus, file and train, validation, test; give one of them (data=FILE)"
            )
        if c.corpus:
            from spen_images import segmentation_sample as sample

            self._split: Any = "the sample's own (synthetic)"
            for part, arrays in sample.make().items():
                self._set(part, *arrays)
        elif c.file is not None:
            self._split = f"the parts of {c.file}"
            arrays = self._read_arrays(c.file)
            for part in sp.PARTS:
                self._set(part, *masks.check_arrays(sp.locate(c.file), arrays, part))
        elif len(apart) == len(sp.PARTS):
            self._split = {part: getattr(c, part) for part in sp.PARTS}
            for part, path in self._split.items():
                arrays = self._read_arrays(path)
                self._set(part, *masks.check_arrays(sp.locate(path), arrays, _find_part(arrays, part)))
        else:
            has = f"task.{', task.'.join(apart)} alone" if apart else "neither corpus nor file"
            raise sp.ConfigError(
                f"task: found {has}; expected corpus: 'sample', file: a .npz with all parts, or train, validation "
                "and test, a .npz each"
            )
        self._measure()

    def _read_arrays(self, path: str) -> Mapping[str, np.ndarray]:
        self._checksums[path] = sp.sha256(sp.locate(path))
        return masks.read_arrays(sp.locate(path))

    def _set(self, part: str, levels: np.ndarray, gold: np.ndarray | None) -> None:
        assert gold is not None
        self._parts[part] = [Example(f"{part}{i:04}", image, gold[i]) for i, image in enumerate(levels)]

    def _measure(self) -> None:
        """The kind of the images, and the training part's mean and deviation of each channel."""
        train = self._parts["train"]
        channels = {part: _count_channels(self._parts[part][0].image) for part in sp.PARTS}
        for part, n in channels.items():
            if n != channels["train"]:
                raise sp.DataError(
                    getattr(self.config, part) or self.config.file,
                    None,
                    f"images of {n} channels for {part}",
                    f"{channels['train']}, as of the training part",
                )
        # An image at a time: all of them as numbers would be eight times what they are in memory.
        total, squares, count = 0.0, 0.0, 0
        for example in train:
            pixels = example.image.reshape(-1, channels["train"]) / WHITE
            total, squares, count = total + pixels.sum(0), squares + (pixels**2).sum(0), count + len(pixels)
        mean = total / count
        self._mean = mean.tolist()
        self._deviation = np.maximum(np.sqrt(np.maximum(squares / count - mean**2, 0)), 1e-3).tolist()
        self.inputs = sp.ImageInputs(channels["train"], smallest=min(train[0].mask.shape))

    def part(self, name: str) -> Sequence[Example]:
        return self._parts[name]

    def augment(self, example: Example, rng: np.random.Generator) -> Example:
        """A shift, a mirror image and other light, all drawn from `rng`; the mask is moved with its image."""
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

    def collate(self, examples: Sequence[Example], rows: Sequence[int] | None = None) -> sp.Batch:
        shapes = np.array([example.image.shape[:2] for example in examples])
        size = (len(examples), *shapes.max(0).tolist())
        image, gold = np.zeros((*size, self.inputs.channels), np.float32), np.zeros(size, np.float32)
        mean, deviation = (np.array(values, np.float32) for values in (self._mean, self._deviation))
        for i, (example, (height, width)) in enumerate(zip(examples, shapes.tolist(), strict=True)):
            pixels = np.asarray(example.image, np.float32).reshape(height, width, -1) / WHITE
            image[i, :height, :width] = (pixels - mean) / deviation
            if example.mask is not None:
                gold[i, :height, :width] = example.mask
        levels = torch.from_numpy(image).movedim(3, 1)
        inputs = {"image": levels[:, 0] if self.inputs.channels == 1 else levels.contiguous()}
        labelled = torch.tensor([example.mask is not None for example in examples])
        numbers = torch.arange(len(examples)) if rows is None else torch.as_tensor(rows, dtype=torch.long)
        gold = torch.from_numpy(gold).unsqueeze(1) if labelled.any() else None
        return sp.Batch(sp.X(inputs, padding_mask(shapes), len(examples)), numbers, gold, labelled)

    def length(self, example: Example) -> int:
        """Orders examples by rows, then by columns, so that few batches hold images of different sizes."""
        rows, columns = example.image.shape[:2]
        return rows * 2**16 + columns

    def metric(self) -> SegmentationMetric:
        return SegmentationMetric(self.decode)

    def predictions(self, proposal: sp.Proposal, batch: sp.Batch, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """`name`; `mask`, a PNG in base64, 255 inside and 0 outside; `iou`, if gold is known."""
        decided = self.decode(proposal, batch.x).detach()
        scores: list[float] = []
        if batch.gold is not None:
            scores = self.space.score(decided, batch.gold.to(decided), batch.x.mask)[:, 0].tolist()
        levels = (decided * WHITE).byte()[:, 0].cpu().numpy()
        return [
            {
                "name": example.name,
                "mask": images.to_base64(np.ascontiguousarray(y[: example.image.shape[0], : example.image.shape[1]])),
                **({} if example.mask is None else {"iou": round(scores[i], 6)}),
            }
            for i, (example, y) in enumerate(zip(examples, levels, strict=True))
        ]

    def read(self, path: str) -> list[Example]:
        """A .npz file with `images`, perhaps with `masks`, or the test part of one with all parts; or an image, or a
        folder of images, without masks: PNG or JPEG."""
        where = sp.locate(path)
        if where.suffix.lower() != ".npz":
            files = images.list_images(where)
            return [Example(f.name, images.read_image(f, self.inputs.channels), None) for f in files]
        arrays = masks.read_arrays(where)
        levels, gold = masks.check_arrays(where, arrays, _find_part(arrays, "test"), need_masks=False)
        if _count_channels(levels[0]) != self.inputs.channels:
            wanted = f"{self.inputs.channels}, as in training"
            raise sp.DataError(where, None, f"images of {_count_channels(levels[0])} channels", wanted)
        return [Example(f"{i:04}", image, None if gold is None else gold[i]) for i, image in enumerate(levels)]

    def parse(self, item: Any) -> Example:
        """`{"image": …}`: rows of levels from 0 to 255 (lists or an array, `(row, column, 3)` in colours), a PNG in
        base64, or a path. Optional: `"mask"`, 0 and 1 in rows or 0 and 255 in a PNG (gold), and `"name"`.

        A text or an array alone is such an image.
        """
        item = item if isinstance(item, Mapping) else {"image": item}
        if item.get("image") is None:
            raise sp.DataError("input", None, f"{item!r:.80}", '{"image": rows of levels, a PNG in base64, or a path}')
        image = to_image(item["image"], self.inputs.channels)
        mask = None if item.get("mask") is None else to_mask(item["mask"], image.shape[:2])
        text = str(item["image"]) if isinstance(item["image"], (str, Path)) else images.PNG
        name = "" if text.startswith(images.PNG) else Path(text).name
        return Example(str(item.get("name", name)), image, mask)

    def show(self, example: Example) -> sp.Shown:
        """The image's name and size."""
        rows, columns = example.image.shape[:2]
        return sp.Shown([f"{example.name} ({rows} rows, {columns} columns)"])

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

    def checksums(self) -> dict[str, str]:
        return dict(self._checksums)


def _count_channels(image: np.ndarray) -> int:
    return 1 if image.ndim == 2 else image.shape[2]


def _find_part(arrays: Mapping[str, np.ndarray], part: str) -> str | None:
    """None if a file has `images` of no part."""
    return None if "images" in arrays else part
