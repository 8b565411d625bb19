"""The convolutional net and energy of images: padding changes nothing, and both have second derivatives."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

import spen_plugins as sp
from spen_images.convolutions import Conv, Fcn, GroupNorm, make_masks
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyLabels

REGISTRY = Registry()
SMALL = {Fcn: {"filters": 4, "levels": 3, "groups": 2}, Conv: {"filters": [3, 4, 2], "size": 3, "hidden": 3}}


def make(cls: type, task: object, **fields: object):
    torch.manual_seed(0)
    return cls(cls.Config(**{**SMALL[cls], **fields}), task).double().eval()


def make_images(*sizes: tuple[int, int], channels: int = 3) -> tuple[SimpleNamespace, sp.X, torch.Tensor]:
    """A task for a component, images of these sizes in one batch, and two relaxed outputs of each."""
    task = SimpleNamespace(space=sp.BinaryGrid(), inputs=sp.ImageInputs(channels))
    rows, columns = (max(size) for size in zip(*sizes, strict=True))
    mask = torch.zeros(len(sizes), rows, columns, dtype=torch.bool)
    for i, (height, width) in enumerate(sizes):
        mask[i, :height, :width] = True
    generator = torch.Generator().manual_seed(3)
    image = torch.randn(len(sizes), channels, rows, columns, generator=generator, dtype=torch.float64)
    image = (image * mask.unsqueeze(1))[:, 0] if channels == 1 else image * mask.unsqueeze(1)
    y = torch.rand(len(sizes), 2, rows, columns, generator=generator, dtype=torch.float64) * mask.unsqueeze(1)
    return task, sp.X({"image": image}, None if mask.all() else mask, len(sizes)), y


def crop(x: sp.X, y: torch.Tensor, row: int, height: int, width: int) -> tuple[sp.X, torch.Tensor]:
    image = x.inputs["image"][row : row + 1, ..., :height, :width]
    return sp.X({"image": image}, None, 1), y[row : row + 1, :, :height, :width]


SIZES = ((9, 5), (4, 7), (1, 1), (8, 8))


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_has_the_same_result_alone_as_beside_larger_ones(channels: int) -> None:
    task, x, y = make_images(*SIZES, channels=channels)
    net, energy = make(Fcn, task), make(Conv, task)
    logits, energies = net(x).mean, energy.at(x)(y)
    for row, (height, width) in enumerate(SIZES):
        single, output = crop(x, y, row, height, width)
        torch.testing.assert_close(net(single).mean, logits[row : row + 1, :, :height, :width], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(energy.at(single)(output), energies[row : row + 1], rtol=1e-9, atol=1e-9)


def test_padding_of_an_output_changes_no_energy() -> None:
    task, x, y = make_images(*SIZES)
    energy = make(Conv, task).at(x)
    torch.testing.assert_close(energy(y + 7 * ~x.mask.unsqueeze(1)), energy(y))


def test_masks_of_lower_resolutions_have_one_place_per_two() -> None:
    _, x, _ = make_images((9, 5), (4, 7))
    sizes = [[int(mask[i, 0].sum()) for i in (0, 1)] for mask in make_masks(x.mask, torch.zeros(()), 3)]
    assert sizes == [[45, 28], [5 * 3, 2 * 4], [3 * 2, 1 * 2]]


def test_group_normalisation_of_padded_images_matches_torch() -> None:
    _, x, _ = make_images((4, 6), (5, 3))
    norm = GroupNorm(2, 4).double()
    torch.nn.init.normal_(norm.weight), torch.nn.init.normal_(norm.bias)
    values = torch.randn(2, 4, 5, 6, dtype=torch.float64)
    mask = x.mask.unsqueeze(1).double()
    outputs = norm(values, mask)
    for row, (height, width) in enumerate(((4, 6), (5, 3))):
        single = values[row : row + 1, :, :height, :width]
        expected = F.group_norm(single, 2, norm.weight, norm.bias, norm.eps)
        torch.testing.assert_close(outputs[row : row + 1, :, :height, :width], expected)


@pytest.mark.parametrize("cls", [Fcn, Conv])
@pytest.mark.parametrize("sizes", [((4, 5), (3, 4)), ((4, 4), (4, 4))], ids=["padded", "of one size"])
def test_second_derivatives_in_the_weights(cls: type, sizes: tuple) -> None:
    """The implicit gradient needs them: for both in their own weights, and for the energy in y and its weights."""
    task, x, y = make_images(*sizes, channels=1)
    part = make(cls, task, **({"levels": 2, "filters": 2, "groups": 1} if cls is Fcn else {"filters": [2, 2]}))
    names, values = zip(*part.named_parameters(), strict=True)

    def value(*args: torch.Tensor) -> torch.Tensor:
        *weights, output = args
        state = dict(zip(names, weights, strict=True))
        if cls is Fcn:
            logits = torch.func.functional_call(part, state, (x,)).logits
            return (F.softplus(logits) * output[:, :1]).sum()
        energy = torch.func.functional_call(Bound(part), {f"energy.{k}": v for k, v in state.items()}, (x, output))
        return energy.square().sum()

    inputs = tuple(v.detach().requires_grad_() for v in (*values, y))
    assert torch.autograd.gradcheck(value, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(value, inputs, fast_mode=True)


class Bound(torch.nn.Module):
    """An energy as a function of x and y."""

    def __init__(self, energy: sp.Energy) -> None:
        super().__init__()
        self.energy = energy

    def forward(self, x: sp.X, y: torch.Tensor) -> torch.Tensor:
        return self.energy(self.energy.encode(x), y)


def test_the_energy_of_a_first_layer_over_all_channels() -> None:
    """The first layer's two parts are one convolution over the image's channels and y."""
    task, x, y = make_images((5, 6), (5, 6))
    energy = make(Conv, task, filters=[3])
    weight = torch.cat([energy.image.weight, energy.output.weight], 1)
    for n in range(2):
        channels = torch.cat([x.inputs["image"], y[:, n : n + 1]], 1)
        means = F.silu(F.conv2d(channels, weight, energy.image.bias, padding=1)).mean((2, 3))
        torch.testing.assert_close(energy.head(means)[:, 0], energy.at(x)(y)[:, n])


def test_filters_are_divided_among_groups() -> None:
    with pytest.raises(ConfigError, match="filters=6 must be a multiple of groups=4"):
        REGISTRY.parse("inference_net", {"type": "images.fcn", "filters": 6, "groups": 4}, "inference_net", "test")


@pytest.mark.parametrize("fields", [{"size": 4}])
def test_a_filter_has_a_middle(fields: dict) -> None:
    with pytest.raises(ConfigError, match=r"size=4.*odd"):
        REGISTRY.parse("energy", {"type": "images.conv", **fields}, "energy", "test")


def test_labels_are_rejected() -> None:
    task = ToyLabels()
    for cls in (Fcn, Conv):
        with pytest.raises(ConfigError, match=r"VectorInputs and LabelSet\. Use a task with masks of images"):
            make(cls, task)
