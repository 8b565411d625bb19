"""Task `denoising`: noise, crops, scores, files, bad input."""

from __future__ import annotations

import base64
import io
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image

from spen_images import images
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.loop.evaluation import evaluation_batches
from spen_plugins.testing import check_task
from tests.loaded import loaded


def load_denoising(**fields):
    return loaded("images.denoising", **fields)


@pytest.fixture(scope="module")
def sample():
    return load_denoising(corpus="sample")


def make_image(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (rows, columns), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    """Five images, one of them a JPEG, and files that are no images."""
    path = tmp_path / "photos"
    path.mkdir()
    for i in range(4):
        Image.fromarray(make_image(12 + i, 15, i)).save(path / f"{i}.png")
    Image.fromarray(make_image(20, 11)).save(path / "4.JPG", format="JPEG")
    (path / "notes.txt").write_text("not an image")
    (path / ".hidden.png").write_text("nor this")
    (path / "folder.png").mkdir()
    return path


def make_batches(task, examples, size):
    for rows in evaluation_batches([task.length(e) for e in examples], size):
        yield task.collate([examples[i] for i in rows], rows.tolist()), rows


def collect_noisy_images(task, examples, size):
    """Each example's own pixels in `X.inputs`, without its batch's padding."""
    pixels = {}
    for batch, rows in make_batches(task, examples, size):
        for index, row in enumerate(rows.tolist()):
            height, width = examples[row].shape
            image = batch.x.inputs["image"][index]
            pixels[row] = image[:height, :width]
            assert not image[height:].any() and not image[:, width:].any()
    return pixels


def test_the_sample_is_a_sound_task_with_both_orientations(sample):
    assert [len(sample.part(part)) for part in ("train", "validation", "test")] == [24, 8, 8]
    assert {example.shape for example in sample.part("train")} == {(48, 40), (40, 48)}
    assert sample.space.shape == (None, None) and sample.inputs.smallest == 40


def test_the_mask_is_of_each_images_own_size(sample):
    batch = sample.collate(sample.part("test")[:2])
    assert batch.x.mask.shape == (2, 48, 48) and batch.gold.shape == (2, 1, 48, 48)
    for mask, example in zip(batch.x.mask, sample.part("test"), strict=False):
        rows, columns = example.shape
        assert mask[:rows, :columns].all() and int(mask.sum()) == rows * columns
    assert not batch.gold[:, 0][~batch.x.mask].any()
    assert sample.collate(sample.part("test")[::2]).x.mask is None


@pytest.mark.parametrize("part", ["validation", "test"])
def test_fixed_noise_depends_on_seed_part_and_row_alone(sample, part):
    examples = sample.part(part)
    single, batched = collect_noisy_images(sample, examples, 1), collect_noisy_images(sample, examples, 5)
    repeated = collect_noisy_images(load_denoising(corpus="sample"), examples, 2)
    for row in range(len(examples)):
        assert torch.equal(single[row], batched[row]) and torch.equal(single[row], repeated[row])
    height, width = examples[0].shape
    number = ("train", "validation", "test").index(part)
    noise = np.random.default_rng((0, number, 0)).standard_normal((height, width), dtype=np.float32)
    expected = (examples[0].clean + 25 * noise) / 255
    np.testing.assert_allclose(single[0].numpy(), expected, atol=1e-6)
    other = load_denoising(corpus="sample", noise_seed=1)
    assert not torch.equal(collect_noisy_images(other, other.part(part), 5)[0], single[0])


def test_noise_has_the_deviation_of_the_config():
    task = load_denoising(corpus="sample", sigma=50)
    test = task.part("test")
    noise = [255 * image.numpy() - test[row].clean for row, image in collect_noisy_images(task, test, 1).items()]
    values = np.concatenate([n.ravel() for n in noise])
    assert values.std() == pytest.approx(50, rel=0.03) and abs(values.mean()) < 2


def test_augmentation_depends_on_its_random_numbers_alone(folder):
    task = load_denoising(train=str(folder), held_out=1, crop=8)
    one, two = task.part("train")[:2]
    first = task.augment(one, np.random.default_rng(3))
    task.augment(two, np.random.default_rng(5))
    repeated = task.augment(one, np.random.default_rng(3))
    assert np.array_equal(first.clean, repeated.clean) and np.array_equal(first.noise, repeated.noise)
    other = task.augment(one, np.random.default_rng(4))
    assert not np.array_equal(first.noise, other.noise)
    batch = task.collate([first, other])
    assert batch.x.inputs["image"].shape == (2, 8, 8) and batch.x.mask is None and batch.labelled.all()
    noise = 255 * (batch.x.inputs["image"][0] - batch.gold[0, 0]).numpy()
    np.testing.assert_allclose(noise, 25 * first.noise, atol=1e-3)


def test_a_crop_is_a_piece_of_its_image_under_each_of_8_symmetries():
    task = load_denoising(corpus="sample", crop=5)
    example = task.part("train")[0]
    windows = np.lib.stride_tricks.sliding_window_view(example.clean, (5, 5)).reshape(-1, 25)
    window_bytes = {window.tobytes() for window in windows}
    symmetries = set()
    for seed in range(60):
        crop = task.augment(example, np.random.default_rng(seed)).clean
        assert np.shares_memory(crop, example.clean)
        inverses = [np.rot90(c, k) for c in (crop, crop.T) for k in range(4)]
        fits = [np.ascontiguousarray(c).tobytes() in window_bytes for c in inverses]
        assert any(fits)
        symmetries.add(fits.index(True))
    assert len(symmetries) == 8


def test_without_crops_and_flips_only_the_noise_is_new():
    task = load_denoising(corpus="sample", crop=None, flips=False)
    example = task.part("train")[1]
    assert task.augment(example, np.random.default_rng(0)).clean is example.clean


def test_unaugmented_examples_have_fixed_noise_and_repeats_differ():
    task = load_denoising(corpus="sample", repeat=3)
    train = task.part("train")
    assert len(train) == 72 and train[24].clean is train[25].clean is train[26].clean
    batch = task.collate(train[:2])
    assert torch.equal(batch.gold[0], batch.gold[1])
    assert not torch.equal(batch.x.inputs["image"][0], batch.x.inputs["image"][1])
    assert torch.equal(task.collate(train[:2]).x.inputs["image"], batch.x.inputs["image"])


def test_psnr_by_hand(sample):
    """Errors of 0.1, and of 0.2 in half of the pixels; outputs are clipped, and padding doesn't count."""
    clean = [np.full((2, 2), 51, np.uint8), np.full((2, 3), 0, np.uint8), np.full((1, 2), 255, np.uint8)]
    examples = [sample.parse({"image": c.astype(float), "clean": c.astype(float)}) for c in clean[:2]]
    examples += [sample.parse({"image": np.array([[255.0, 0.0]]), "clean": clean[2].astype(float)})]
    batch = sample.collate(examples)
    y = batch.gold.clone()
    y[0, 0, :2, :2] += 0.1
    y[1, 0, 0] += 0.2
    y[2, 0, :1, :2] += 7.0  # clipped to 1
    y[:, 0][~batch.x.mask] = 0.5
    metric = sample.metric()
    metric.update(sample.space.independent(y, None), batch)
    expected = [20.0, 10 * math.log10(1 / 0.02), 100.0]
    numerator, denominator = metric.ratios()
    assert numerator.tolist() == pytest.approx(expected, abs=1e-5) and denominator.tolist() == [1, 1, 1]
    scores = metric.compute()
    assert scores["psnr"] == pytest.approx(sum(expected) / 3, abs=1e-5)
    assert scores["rmse"] == pytest.approx(255 * math.sqrt((0.01 + 0.02) / 3), rel=1e-5)
    assert scores["psnr_noisy"] == pytest.approx((100 + 100 + 10 * math.log10(2)) / 3, abs=1e-5)
    assert metric.unit == "dB"


def test_scores_leave_out_images_without_a_clean_one(sample):
    unlabelled = sample.parse({"image": make_image(4, 4).astype(float)})
    labelled = sample.part("test")[0]
    batch = sample.collate([unlabelled, labelled])
    assert batch.labelled.tolist() == [False, True]
    metric = sample.metric()
    metric.update(sample.space.independent(batch.x.inputs["image"].unsqueeze(1), batch.x.mask), batch)
    numerator, denominator = metric.ratios()
    assert numerator[0] == 0 and denominator.tolist() == [0, 1]
    assert metric.compute()["psnr"] == pytest.approx(numerator[1].item())
    empty = sample.collate([unlabelled])
    assert empty.gold is None
    empty_metric = sample.metric()
    empty_metric.update(sample.space.independent(empty.x.inputs["image"].unsqueeze(1), empty.x.mask), empty)
    with pytest.raises(DataError, match="no image with gold"):
        empty_metric.compute()


def test_scores_do_not_depend_on_batches(sample):
    examples = sample.part("test")
    scores = []
    for size in (1, 3, 8):
        metric = sample.metric()
        for batch, _ in make_batches(sample, examples, size):
            metric.update(sample.space.independent(batch.x.inputs["image"].unsqueeze(1), batch.x.mask), batch)
        scores.append(metric.compute())
    for other in scores[1:]:
        assert other == pytest.approx(scores[0], abs=1e-9)
    assert 20 < scores[0]["psnr_noisy"] < 20.4 < scores[0]["psnr"] + 0.4  # σ = 25 of 255 is 20.17 dB


def test_predictions_are_png(sample):
    examples = [*sample.part("test")[:2], sample.parse({"image": make_image(6, 9), "name": "mine"})]
    batch = sample.collate(examples)
    proposal = sample.space.independent(batch.x.inputs["image"].unsqueeze(1), batch.x.mask)
    predictions = json.loads(json.dumps(sample.predictions(proposal, batch, examples)))
    metric = sample.metric()
    metric.update(proposal, batch)
    for i, (prediction, example) in enumerate(zip(predictions, examples, strict=True)):
        with Image.open(io.BytesIO(base64.b64decode(prediction["image"]))) as image:
            assert image.format == "PNG" and image.mode == "L" and image.size == example.shape[::-1]
            pixels = np.array(image)
        height, width = example.shape
        expected = proposal.mode[i, 0, :height, :width].clamp(0, 1).numpy() * 255
        assert np.abs(pixels - expected).max() <= 0.5 + 1e-3
        if example.clean is not None:
            assert prediction["psnr"] == pytest.approx(metric.ratios()[0][i].item(), abs=1e-4)
    assert "psnr" not in predictions[2] and predictions[2]["name"] == "mine"


def test_parse_takes_rows_png_and_paths(sample, folder):
    pixels = make_image(12, 15)
    text = images.to_base64(pixels)
    for value in (pixels.tolist(), pixels, torch.from_numpy(pixels), text, str(folder / "0.png"), folder / "0.png"):
        example = sample.parse({"image": value})
        assert example.clean is None and np.array_equal(example.noisy, pixels)
    from_path = sample.parse(str(folder / "0.png"))
    assert from_path.name == "0.png" and np.array_equal(from_path.noisy, pixels)
    assert sample.parse({"image": pixels}).name == "" and sample.parse({"image": text}).name == ""
    noisy = pixels + 300.0 * np.random.default_rng(0).standard_normal(pixels.shape)
    example = sample.parse({"image": noisy.clip(-900, 1200), "clean": text})
    batch = sample.collate([example])
    np.testing.assert_allclose(255 * batch.x.inputs["image"][0], noisy.clip(-900, 1200), atol=1e-3)
    np.testing.assert_allclose(255 * batch.gold[0, 0], pixels, atol=1e-3)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (3, "rows of grey levels, a PNG in base64, or a path"),
        ({}, "rows of grey levels, a PNG in base64, or a path"),
        ({"image": [[1, 2], [3]]}, "rows of levels from 0 to 255"),
        ({"image": [["a"]]}, "rows of levels from 0 to 255"),
        ({"image": []}, r"an image of shape \(0,\)"),
        ({"image": [[[1, 2]]]}, r"an image of shape \(1, 1, 2\)"),
        ({"image": [[1.0, float("nan")]]}, "levels from nan"),
        ({"image": [[0.0, 0.5], [1.0, 0.2]]}, "levels from 0 to 1.*multiply by 255 if 1 is white"),
        ({"image": [[0, 40000]]}, "levels from 0 to 40000"),
        ({"image": "iVBORw0KGgo%%"}, "which is not base64"),
        ({"image": "iVBORw0KGgoAAAA="}, "no image, or a damaged one"),
        ({"image": "nowhere/x.png"}, "no such file"),
        ({"image": [[1, 2]], "clean": [[1, 2, 3]]}, r"a clean image of shape \(1, 3\); expected \(1, 2\)"),
    ],
)
def test_parse_reports_invalid_items(sample, item, message):
    with pytest.raises(DataError, match=message):
        sample.parse(item)


def test_a_user_folder(folder):
    task = load_denoising(train=str(folder), held_out=2, crop=10)
    assert [e.name for e in task.part("train")] == ["0.png", "1.png", "2.png"]
    assert [e.name for e in task.part("validation")] == ["3.png", "4.JPG"] and not task.part("test")
    assert task.protocol()["split"]["validation"] == (
        f"the last 2 images of {folder} by name, which are not trained on"
    )
    assert task.protocol()["noise"] == "Gaussian, sigma 25 (of 255), fixed by seed 0, part and row"
    assert np.array_equal(task.part("train")[0].clean, make_image(12, 15, 0))
    check_task(task)


def test_a_part_may_be_one_file_and_validation_a_folder(folder):
    task = load_denoising(train=str(folder / "0.png"), validation=str(folder), test=str(folder / "4.JPG"), crop=None)
    assert [len(task.part(part)) for part in ("train", "validation", "test")] == [1, 5, 1]
    assert task.inputs.smallest == 12


def test_checksums_are_of_names_and_contents(folder):
    task = load_denoising(train=str(folder), held_out=2, crop=10)
    checksums = task.checksums()
    assert list(checksums) == [str(folder)] and len(checksums[str(folder)]) == 64
    (folder / "notes.txt").write_text("another note")
    assert load_denoising(train=str(folder), held_out=2, crop=10).checksums() == checksums
    (folder / "0.png").rename(folder / "00.png")
    assert load_denoising(train=str(folder), held_out=2, crop=10).checksums() != checksums


def test_read_adds_the_test_parts_noise_and_prediction_adds_none(folder):
    task = load_denoising(train=str(folder), held_out=2, crop=10, test=str(folder))
    examples, test, inputs = task.read(str(folder)), task.part("test"), task.read_inputs(str(folder))
    images_read, test_images = collect_noisy_images(task, examples, 5), collect_noisy_images(task, test, 2)
    assert all(torch.equal(images_read[row], test_images[row]) for row in range(5))
    batch = task.collate(inputs)
    assert batch.gold is None
    np.testing.assert_allclose(255 * batch.x.inputs["image"][0, :12, :15], make_image(12, 15, 0), atol=1e-4)


def test_facts_restore_the_task_without_files(folder):
    task = load_denoising(train=str(folder), held_out=2, crop=10)
    facts = json.loads(json.dumps(task.facts()))
    restored = type(task)(task.config)
    restored.restore(facts)
    assert restored.inputs == task.inputs and restored.protocol() == task.protocol() and restored.facts() == facts
    assert not restored.part("train")


def save(image: Image.Image, path):
    image.save(path)
    return path


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "LA", "1", "I;16"])
def test_the_error_for_a_colour_image_explains_the_conversion(folder, mode):
    image = Image.fromarray(make_image(12, 12))
    path = save(image.convert("I").convert(mode) if mode == "I;16" else image.convert(mode), folder / "2.png")
    advice = "with white at 255" if mode == "I;16" else r".*convert\('L'\)"
    with pytest.raises(
        DataError, match=rf"2\.png: found .* mode {mode}; expected an 8-bit grayscale image, .*{advice}"
    ):
        load_denoising(train=str(folder), held_out=1, crop=8)
    assert images.list_images(path) == [path]


def test_damaged_files_are_named(folder):
    png = (folder / "1.png").read_bytes()
    for data in (png[: len(png) // 2], b"text", b"", png[:40] + b"\0" * 20 + png[60:], png[:20]):
        (folder / "1.png").write_bytes(data)
        with pytest.raises(DataError, match=r"1\.png: found no image, or a damaged one"):
            load_denoising(train=str(folder), held_out=1, crop=8)
    jpeg = (folder / "4.JPG").read_bytes()
    (folder / "1.png").write_bytes(png)
    (folder / "4.JPG").write_bytes(jpeg[: len(jpeg) * 2 // 3])
    with pytest.raises(DataError, match=r"4\.JPG: found no image, or a damaged one"):
        load_denoising(train=str(folder), held_out=1, crop=8)


def test_a_bomb_is_rejected(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match=r"0\.png: found .*100.*expected a smaller image"):
        images.read_image(folder / "0.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 60)
    with pytest.raises(DataError, match=r"0\.png: found .*120.*expected a smaller image"):
        images.read_image(folder / "0.png")


def test_empty_and_missing_folders(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty: found an empty folder; expected images \(\.png"):
        load_denoising(train=str(tmp_path / "empty"))
    with pytest.raises(DataError, match="found no image directly in this folder, only folders; expected images"):
        load_denoising(train=str(tmp_path))
    (tmp_path / "empty" / "x.txt").write_text("x")
    with pytest.raises(DataError, match="a folder with 1 other files"):
        load_denoising(train=str(tmp_path / "empty"))
    with pytest.raises(DataError, match="no such file or folder; expected a folder of images, or one image"):
        load_denoising(train=str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="no images/none below"):
        load_denoising(train="data:images/none")


def test_images_smaller_than_the_crop_are_named(folder):
    with pytest.raises(DataError, match=r"0\.png: found 12 rows and 15 columns; expected at least task\.crop=13"):
        load_denoising(train=str(folder), held_out=1, crop=13)
    with pytest.raises(DataError, match=r"the sample: found 48 rows and 40 columns.*or task\.crop=null"):
        load_denoising(corpus="sample", crop=41)
    with pytest.raises(DataError, match=r"5 images, of which task\.held_out=20 .* more than 20, or task\.validation"):
        load_denoising(train=str(folder))


def test_settings_without_data_or_with_too_much(folder):
    with pytest.raises(ConfigError, match="found neither corpus nor train"):
        load_denoising()
    with pytest.raises(ConfigError, match="found corpus: 'sample' and files; use one of the two"):
        load_denoising(corpus="sample", test=str(folder))
    with pytest.raises(ConfigError, match="sigma"):
        load_denoising(corpus="sample", sigma=0)
    with pytest.raises(ConfigError, match="cost_weight"):
        load_denoising(corpus="sample", cost_weight=1)
