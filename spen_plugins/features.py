"""Feature networks: x -> vectors, used by an energy (T_E) and by an inference net (T_F)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.settings.config import Config
from spen_plugins.task import Indexer, Task


class FeatureNetwork(nn.Module):
    """A network x -> vectors, called b(x), F(x) or T(x) in the papers.

    Subclasses set `output_dim`, implement `forward`, and check in the constructor that they support the task's inputs
    (`ConfigError` if not).
    """

    Config: ClassVar[type[Config]] = Config
    output_dim: int
    contextual: bool = True
    """True if a token's vector depends on other tokens of its sentence. If not, a sum over neighbouring tokens needs
    each token encoded only once."""
    large: ClassVar[bool] = False
    """True if several threads pay off even for a few short inputs, as for a pretrained transformer."""

    of_net: ClassVar[bool] = False
    """True if it is built on the inference net's feature network, which the builder passes as `network`. It is not
    passed in the inference net itself, within another feature network, or if that net has none: the default is None."""

    parts: ClassVar[Mapping[str, str]] = {}
    """Keys of its table that hold tables of other feature networks, as in `Component.parts`; the builder makes them
    and passes them to the constructor by key."""

    shareable: ClassVar[tuple[str, ...]] = ()
    """Keys of its table that describe a part of it, a pretrained encoder, which networks of several tasks can share;
    none by default. Networks of one class with equal values of these keys, and equal weights of that part, can."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__()
        self.config = config

    def share(self, other: FeatureNetwork) -> None:
        """Take another network's shared part in place of its own; called only if `shareable` names keys."""

    def shared_part(self) -> nn.Module | None:
        """The part that networks of several tasks can share; None by default."""
        return None

    @classmethod
    def make_inner_task(cls, task: Task) -> Task:
        """The task for which its parts are built, with the inputs that they get; the same task by default."""
        return task

    def forward(self, x: X) -> Tensor:
        """`(batch, output_dim)` for vectors, `(batch, token, output_dim)` for sentences."""
        raise NotImplementedError(f"{type(self).__name__} does not implement forward")

    def save_assets(self, folder: Path) -> None:
        """Write to a new folder all files, besides weights, that `relocated` needs.

        Nothing by default.
        """

    @classmethod
    def relocated(cls, config: Any, assets: Path) -> Any:
        """The config to rebuild this network from saved assets; the same config by default."""
        return config

    def checksums(self) -> dict[str, str]:
        """sha256 of each file read, by path; a run can be resumed only if they are unchanged."""
        return {}

    def indexer(self) -> tuple[str, Indexer] | None:
        """The indexer of this network's inputs besides word indices, under a name shared by equal networks."""
        return None
