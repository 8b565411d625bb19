"""PSNR of BM3D on the test part of `denoise data=bsd`, with that part's own noise.

    pip install bm3d                      # for research only: read its licence
    python -m tools.bench.bm3d_psnr             # BSD68 at sigma 25, about 14 seconds of processor time an image
    python -m tools.bench.bm3d_psnr --test data:images/bsd/Set12 --sigma 15

BM3D is given the noise's deviation, as the energies are. The mean over images is printed last.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import numpy as np
import torch

from spen_images.denoising import Denoising
from spen_images.denoising_values import Example, psnr, squared_error
from tools.errors import end_with_message


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", default="data:images/bsd/BSD68", help="folder of clean images")
    parser.add_argument("--sigma", type=float, default=25.0, help="deviation of the noise, in grey levels")
    options = parser.parse_args()
    try:
        from bm3d import bm3d
    except ImportError:
        raise SystemExit("error: BM3D is missing; found no module 'bm3d'; expected after: pip install bm3d") from None
    task = Denoising(Denoising.Config(train="data:images/bsd/Train400", test=options.test, sigma=options.sigma))
    task.load()
    values = [score(task, example, bm3d) for example in task.part("test")]
    print(f"mean of {len(values)} images: {statistics.fmean(values):.2f} dB")


def score(task: Denoising, example: Example, denoise: Callable[..., np.ndarray]) -> float:
    """PSNR in dB of the output of BM3D for an example, clipped to the range of grey levels."""
    batch = task.collate([example])
    output = denoise(batch.x.inputs["image"][0].numpy(), task.config.sigma / 255)
    y = torch.from_numpy(np.asarray(output)).clamp(0, 1)[None, None]
    value = psnr(squared_error(y, batch.gold, batch.x.mask)).item()
    print(f"{example.name}\t{value:.2f}", flush=True)
    return value


if __name__ == "__main__":
    main()
