"""Feature networks: x -> vectors, used by an energy (T_E) and by an inference net (T_F)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.config.config import Config
from spen_plugins.task import Indexer, Task


class FeatureNetwork(nn.Module):
    """b(x), F(x), T(x) in the papers.

    A subclass sets `output_dim` and implements `forward`, and checks in its constructor that the task's inputs are
    of a kind it takes (`ConfigError` if not).
    """

    Config: ClassVar[type[Config]] = Config
    output_dim: int
    contextual: bool = True
    """Whether a token's vector depends on other tokens of its sentence. Where it doesn't, a sum over neighbouring
    tokens needs each token encoded once only."""
    large: ClassVar[bool] = False
    """Whether several threads pay even for a few short inputs, as for a pretrained transformer."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__()
        self.config = config

    def forward(self, x: X) -> Tensor:
        """`(batch, output_dim)` for vectors, `(batch, token, output_dim)` for sentences."""
        raise NotImplementedError

    def save_assets(self, folder: Path) -> None:
        """Write what a run folder must hold, beside weights, so that `relocated` needs nothing else; make the folder.

        Nothing by default.
        """

    @classmethod
    def relocated(cls, config: Any, assets: Path) -> Any:
        """The config that makes this network again from saved assets; the same config by default."""
        return config

    def checksums(self) -> dict[str, str]:
        """sha256 of each file read, by path; a run goes on only while they are the same."""
        return {}

    def indexer(self) -> tuple[str, Indexer] | None:
        """What this network wants of every sentence beyond word numbers, under a name equal networks share."""
        return None
