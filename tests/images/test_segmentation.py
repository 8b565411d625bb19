"""Task `segmentation`: scores, augmentation, files, predictions, bad input."""

from __future__ import annotations

import base64
import io
import json
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from spen_images import images
from spen_images import segmentation_sample as sample_masks
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.loop.evaluation import evaluation_batches
from spen_plugins.testing import check_task
from tests.loaded import loaded


def load_segmentation(**fields):
    return loaded("images.segmentation", **fields)


@pytest.fixture(scope="module")
def sample():
    return load_segmentation(corpus="sample")


def make_arrays(n: int = 6, size: tuple[int, int] = (5, 7), seed: int = 0, colours: bool = True):
    rng = np.random.default_rng(seed)
    shape = (n, *size, 3) if colours else (n, *size)
    return rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, 2, (n, *size), dtype=np.uint8)


def make_parts(**changes):
    """Arrays of a file with all parts."""
    arrays = {}
    for seed, part in enumerate(("train", "val", "test")):
        arrays[f"{part}_images"], arrays[f"{part}_masks"] = make_arrays(seed=seed)
    return arrays | changes


@pytest.fixture
def file(tmp_path):
    np.savez(tmp_path / "mine.npz", **make_parts())
    return tmp_path / "mine.npz"


def test_the_sample_is_a_sound_task(sample):
    assert [len(sample.part(part)) for part in ("train", "validation", "test")] == [96, 32, 32]
    assert sample.inputs.channels == 3 and sample.inputs.smallest == sample_masks.SIDE
    coverage = [e.mask.mean() for e in sample.part("train")]
    assert min(coverage) > 0 and 0.1 < np.mean(coverage) < 0.4
    second = sample_masks.make()
    assert np.array_equal(second["test"][0][3], sample.part("test")[3].image)


def test_iou_and_accuracy_by_hand(sample):
    """An IoU of 2/3, two empty masks, and an IoU of 1/2."""
    gold = [np.array([[1, 1], [1, 0]]), np.zeros((2, 3)), np.array([[1, 0]])]
    masks = [np.array([[1, 1], [0, 0]]), np.zeros((2, 3)), np.array([[1, 1]])]
    examples = [sample.parse({"image": np.zeros((*mask.shape, 3)), "mask": mask}) for mask in gold]
    batch = sample.collate(examples)
    logits = torch.full(batch.gold.shape, 5.0)  # on padding, too
    for i, mask in enumerate(masks):
        logits[i, 0, : mask.shape[0], : mask.shape[1]] = torch.from_numpy(mask * 2.0 - 1)
    metric = sample.metric()
    metric.update(sample.space.independent(logits, batch.x.mask), batch)
    numerator, denominator = metric.ratios()
    assert numerator.tolist() == pytest.approx([2 / 3, 1, 1 / 2]) and denominator.tolist() == [1, 1, 1]
    assert metric.compute() == pytest.approx({"iou": (2 / 3 + 1 + 1 / 2) / 3, "pixel_accuracy": 10 / 12})
    proposal = sample.space.independent(logits, batch.x.mask)
    predictions = sample.predictions(proposal, batch, examples)
    assert [prediction["iou"] for prediction in predictions] == pytest.approx([2 / 3, 1, 1 / 2], abs=1e-6)


def test_scores_do_not_depend_on_batches_and_leave_out_images_without_a_mask(sample):
    examples = [*sample.part("test")[:5], sample.parse({"image": np.full((9, 30, 3), 7)})]
    scores = []
    for size in (1, 2, 6):
        metric = sample.metric()
        for rows in evaluation_batches([sample.length(e) for e in examples], size):
            batch = sample.collate([examples[i] for i in rows], rows.tolist())
            logits = batch.x.inputs["image"].mean(1, keepdim=True)
            metric.update(sample.space.independent(logits, batch.x.mask), batch)
        scores.append(metric.compute())
        assert metric.ratios()[1].sum() == 5
    assert scores[1] == pytest.approx(scores[0]) and scores[2] == pytest.approx(scores[0])
    metric = sample.metric()
    batch = sample.collate(examples[5:])
    metric.update(sample.space.independent(torch.zeros(1, 1, 9, 30)), batch)
    with pytest.raises(DataError, match="no image with gold"):
        metric.compute()


def test_pixels_are_standardised_by_the_training_part(sample):
    batch = sample.collate(sample.part("train"))
    pixels = batch.x.inputs["image"].movedim(1, 3).reshape(-1, 3)
    torch.testing.assert_close(pixels.mean(0), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(pixels.std(0, correction=0), torch.ones(3), atol=1e-4, rtol=0)
    small = sample.parse({"image": np.zeros((2, 3, 3)), "mask": np.ones((2, 3))})
    batch = sample.collate([sample.part("test")[0], small])
    assert batch.x.mask[1].sum() == 6 and not batch.x.inputs["image"][1, :, 2:].any()
    assert batch.x.inputs["image"][1, :, :2, :3].all() and batch.gold[1].sum() == 6


def test_augmentation_depends_on_its_random_numbers_alone():
    task = load_segmentation(corpus="sample", shift=3, brightness=0.2, contrast=0.2)
    one, two = task.part("train")[:2]
    first = task.augment(one, np.random.default_rng(3))
    task.augment(two, np.random.default_rng(5))
    repeated, other = (task.augment(one, np.random.default_rng(seed)) for seed in (3, 4))
    assert np.array_equal(first.image, repeated.image) and np.array_equal(first.mask, repeated.mask)
    assert not np.array_equal(first.image, other.image)
    assert first.image.min() >= 0 and first.image.max() <= 255 and first.image.shape == one.image.shape


def test_a_mask_moves_with_its_image():
    """The mask as a channel of the image stays equal to the mask; every shift and both mirror images are drawn."""
    task = load_segmentation(corpus="sample", shift=2)
    example = task.part("train")[0]
    example = example._replace(image=np.repeat(example.mask[..., None], 3, 2))
    masks = set()
    for seed in range(400):
        augmented = task.augment(example, np.random.default_rng(seed))
        assert np.array_equal(augmented.image[..., 0], augmented.mask)
        masks.add(augmented.mask.tobytes())
    places = {
        mask[2 + top : 26 + top, 2 + left : 26 + left].tobytes()
        for mask in (np.pad(m, 2, mode="edge") for m in (example.mask, example.mask[:, ::-1]))
        for top in range(-2, 3)
        for left in range(-2, 3)
    }
    assert masks == places
    unflipped = load_segmentation(corpus="sample", flips=False)
    assert unflipped.augment(example, np.random.default_rng(0)).image is example.image


def test_light_changes_an_image_and_no_mask():
    task = load_segmentation(corpus="sample", flips=False, brightness=0.5, contrast=0.5)
    example = task.part("train")[0]._replace(image=np.tile(np.array([100.0, 120, 140]), (24, 24, 1)))
    results = [task.augment(example, np.random.default_rng(seed)) for seed in range(50)]
    assert all(result.mask is example.mask for result in results)
    gaps = [
        float(np.ptp(result.image[0, 0])) for result in results if result.image.min() > 0 and result.image.max() < 255
    ]
    assert 20 <= min(gaps) < 30 and 50 < max(gaps) <= 60


def test_a_file_with_all_parts(file):
    task = load_segmentation(file=str(file))
    check_task(task)
    assert [len(task.part(part)) for part in ("train", "validation", "test")] == [6, 6, 6]
    data = np.load(file)
    assert np.array_equal(task.part("validation")[2].image, data["val_images"][2])
    assert np.array_equal(task.part("test")[2].mask, data["test_masks"][2])
    assert list(task.checksums()) == [str(file)] and task.protocol()["split"] == f"the parts of {file}"


def test_a_file_for_each_part_and_masks_of_255_in_grey(tmp_path):
    paths = {}
    for seed, part in enumerate(("train", "validation", "test")):
        image, mask = make_arrays(5, (4 + seed, 6), seed, colours=False)
        paths[part] = str(tmp_path / f"{part}.npz")
        np.savez(paths[part], images=image[..., None] if seed else image, masks=255 * mask)
    task = load_segmentation(**paths)
    check_task(task)
    assert task.inputs.channels == 1 and task.protocol()["split"] == paths
    batch = task.collate([task.part("train")[0], task.part("test")[0]])
    assert batch.x.inputs["image"].shape == (2, 6, 6) and set(batch.gold.unique().tolist()) == {0, 1}


def test_masks_that_are_all_the_same_are_warned_of(sample, tmp_path):
    for value, says in ((0, "empty"), (255, "full")):
        changed = {f"{part}_masks": np.full((6, 5, 7), value, np.uint8) for part in ("train", "val", "test")}
        np.savez(tmp_path / "same.npz", **make_parts(**changed))
        [note] = load_segmentation(file=str(tmp_path / "same.npz")).notes()
        assert f"every training mask is {says}" in note
    assert not sample.notes()


def test_facts_restore_the_task_without_files(file):
    task = load_segmentation(file=str(file))
    facts = json.loads(json.dumps(task.facts()))
    restored = type(task)(task.config)
    restored.restore(facts)
    assert restored.facts() == facts and restored.protocol() == task.protocol() and not restored.part("train")
    image, restored_image = (t.collate([task.part("test")[0]]).x.inputs["image"] for t in (task, restored))
    assert torch.equal(image, restored_image)


def test_predictions_are_png(sample):
    examples = [sample.part("test")[0], sample.parse({"image": np.zeros((6, 9, 3)), "name": "mine"})]
    batch = sample.collate(examples)
    proposal = sample.space.independent(batch.x.inputs["image"][:, :1], batch.x.mask)
    predictions = json.loads(json.dumps(sample.predictions(proposal, batch, examples)))
    for i, (prediction, example) in enumerate(zip(predictions, examples, strict=True)):
        with Image.open(io.BytesIO(base64.b64decode(prediction["mask"]))) as image:
            assert image.format == "PNG" and image.mode == "L" and image.size == example.image.shape[1::-1]
            pixels = np.array(image)
        height, width = example.image.shape[:2]
        assert np.array_equal(pixels, 255 * proposal.mode[i, 0, :height, :width].numpy())
    assert "iou" in predictions[0] and "iou" not in predictions[1] and predictions[1]["name"] == "mine"


def test_read_takes_npz_images_and_folders(sample, file, tmp_path):
    data = np.load(file)
    assert np.array_equal(sample.read(str(file))[4].mask, data["test_masks"][4])
    np.savez(tmp_path / "new.npz", images=data["test_images"])
    assert [e.mask for e in sample.read(str(tmp_path / "new.npz"))] == [None] * 6
    (tmp_path / "photos").mkdir()
    for name, image in zip("ba", data["test_images"], strict=False):
        Image.fromarray(image).save(tmp_path / "photos" / f"{name}.png")
    examples = sample.read(str(tmp_path / "photos"))
    assert [e.name for e in examples] == ["a.png", "b.png"] and np.array_equal(
        examples[0].image, data["test_images"][1]
    )
    assert sample.read(str(tmp_path / "photos" / "b.png"))[0].name == "b.png"


def test_parse_takes_rows_png_and_paths(sample, tmp_path):
    [pixels], [mask] = make_arrays(1)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    path, text, gold = tmp_path / "a.png", images.to_base64(pixels), images.to_base64(255 * mask)
    for value in (pixels, pixels.tolist(), torch.from_numpy(pixels), text, path, str(path)):
        example = sample.parse({"image": value, "mask": mask.tolist()})
        assert np.array_equal(example.image, pixels) and np.array_equal(example.mask, mask)
    assert np.array_equal(sample.parse({"image": text, "mask": gold}).mask, mask)
    assert sample.parse(str(path)).name == "a.png" and sample.parse(pixels).mask is None
    assert sample.parse({"image": text}).name == ""


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('run')",)


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "objects.npz", **make_parts(train_images=np.array([Code()], dtype=object)))
    with pytest.raises(DataError, match=r"objects\.npz: found a file of another type, or pickled Python objects"):
        load_segmentation(file=str(tmp_path / "objects.npz"))
    np.save(tmp_path / "dict.npy", np.array(Code(), dtype=object))
    (tmp_path / "dict.npy").rename(tmp_path / "dict.npz")
    with pytest.raises(DataError, match=r"dict\.npz: found a file of another type, or pickled Python objects"):
        load_segmentation(file=str(tmp_path / "dict.npz"))
    for name, content in (("pickle.npz", pickle.dumps(Code())), ("text.txt", b"no images here")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            DataError, match=rf"{name}: found a file of another type, or pickled Python objects.*a \.npz file"
        ):
            load_segmentation(file=str(tmp_path / name))


IMAGES, MASKS = make_arrays()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"train_masks": MASKS[:, :4]},
            r"'train_masks' of shape \(6, 4, 7\) for 'train_images' of shape \(6, 5, 7, 3\)",
        ),
        ({"val_masks": MASKS[:3]}, r"'val_masks' of shape \(3, 5, 7\).*expected \(6, 5, 7\), one mask of equal size"),
        ({"test_masks": MASKS + 1}, r"1, 2 in 'test_masks', image 0; expected a binary mask"),
        ({"train_masks": MASKS + 254 * (IMAGES[..., 0] > 99)}, r"'train_masks', image \d; expected a binary mask"),
        ({"train_masks": np.where(MASKS, 0.5, 0)}, r"0\.0, 0\.5 in 'train_masks', image 0; expected a binary mask"),
        ({"train_images": IMAGES / 255}, r"type float64; expected .*uint8"),
        ({"train_images": IMAGES[..., :2]}, r"'train_images' of shape \(6, 5, 7, 2\)"),
        ({"val_images": IMAGES[:0], "val_masks": MASKS[:0]}, r"shape \(0, 5, 7, 3\)"),
        ({"test_images": IMAGES[..., 0]}, r"images with 1 channels for test; expected 3, as in the training part"),
        ({"test_masks": None}, r"no 'test_masks' \(it has .*val_masks.*\); expected an array 'test_masks'"),
        ({"val_images": None}, r"no 'validation_images'"),
        ({"test_images": None, "test_masks": None}, r"no 'test_images'"),
        ({"train_images": None, "images": IMAGES}, r"no 'train_images' .* as it has one part, validation= and test="),
    ],
)
def test_invalid_files_are_named(tmp_path, changed, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **{key: value for key, value in make_parts(**changed).items() if value is not None})
    with pytest.raises(DataError, match=rf"bad\.npz: found .*{message}"):
        load_segmentation(file=str(path))


def test_damaged_and_missing_files(tmp_path, file):
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(DataError, match=r"text\.npz: found"):
        load_segmentation(file=str(tmp_path / "text.npz"))
    data = file.read_bytes()
    (tmp_path / "cut.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"cut\.npz: found a damaged file"):
        load_segmentation(file=str(tmp_path / "cut.npz"))
    (tmp_path / "broken.npz").write_bytes(data[:300] + b"xxxx" + data[304:])
    with pytest.raises(DataError, match=r"broken\.npz: found a damaged file"):
        load_segmentation(file=str(tmp_path / "broken.npz"))
    np.save(tmp_path / "one.npy", MASKS)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(DataError, match=r"one\.npz: found one array \(\.npy\)"):
        load_segmentation(file=str(tmp_path / "one.npz"))
    with pytest.raises(DataError, match="no such file"):
        load_segmentation(file=str(tmp_path / "nowhere.npz"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "found neither corpus nor file"),
        ({"train": "a.npz"}, r"found only task\.train; expected"),
        ({"corpus": "sample", "file": "a.npz"}, "found several of corpus, file and train, validation, test; use one"),
        ({"corpus": "sample", "test": "a.npz"}, "found several of corpus, file and train, validation, test; use one"),
        ({"file": "a.npz", "test": "b.npz"}, "found several of corpus, file and train, validation, test; use one"),
    ],
)
def test_settings_without_data_or_with_too_much(fields, message):
    with pytest.raises(ConfigError, match=message):
        load_segmentation(**fields)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({}, "rows of levels, a PNG in base64, or a path"),
        (3, r"an image of shape \(\)"),
        ({"image": [[1, 2], [3]]}, "rows of levels from 0 to 255"),
        ({"image": [[1, 2]]}, r"an image of shape \(1, 2\)"),
        ({"image": np.full((2, 2, 3), 300)}, "levels from 300 to 300"),
        ({"image": np.full((2, 2, 3), float("nan"))}, "levels from nan"),
        ({"image": np.full((2, 2, 3), 0.5)}, "multiply by 255 if 1 is white"),
        ({"image": "iVBORw0KGgo%%"}, "which is not base64"),
        ({"image": "nowhere/x.png"}, "no such file"),
        (
            {"image": np.zeros((2, 2, 3)), "mask": [[1, 0]]},
            r"a mask of shape \(1, 2\); expected \(2, 2\), as the image",
        ),
        ({"image": np.zeros((1, 2, 3)), "mask": [[1, 7]]}, "1.0, 7.0 in the mask; expected a binary mask"),
        ({"image": np.zeros((1, 2, 3)), "mask": [[0, 0.5]]}, "0.0, 0.5 in the mask; expected a binary mask"),
        ({"image": np.zeros((1, 2, 3)), "mask": [["a", 7]]}, "mask .*; expected rows of 0 and 1"),
    ],
)
def test_parse_reports_invalid_items(sample, item, message):
    with pytest.raises(DataError, match=message):
        sample.parse(item)


def test_channels_of_training_and_prediction_agree(sample, tmp_path):
    grey = Image.fromarray(IMAGES[0, ..., 0])
    grey.save(tmp_path / "grey.png")
    grey.convert("1").save(tmp_path / "binary.png")
    binary, same = (example.image for example in sample.read(str(tmp_path)))
    assert np.array_equal(same, np.stack(3 * [IMAGES[0, ..., 0]], -1))
    assert np.array_equal(binary, np.stack(3 * [255 * np.array(grey.convert("1"))], -1))
    message = "found an image with Pillow's mode {}; expected an 8-bit RGB image"
    for mode, more in (("L", {"transparency": 0}), ("LA", {}), ("P", {})):
        grey.convert(mode).save(tmp_path / "other.png", **more)
        with pytest.raises(DataError, match=rf"other\.png: {message.format(mode)}.*convert\('RGB'\)"):
            sample.read(str(tmp_path / "other.png"))
    np.savez(tmp_path / "grey.npz", images=IMAGES[..., 0])
    with pytest.raises(DataError, match=r"grey\.npz: found images with 1 channels; expected 3, as in training"):
        sample.read(str(tmp_path / "grey.npz"))
