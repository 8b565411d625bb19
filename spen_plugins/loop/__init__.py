"""The training loop, which runs every trainer's stages of phases."""

from spen_plugins.loop.evaluation import evaluate
from spen_plugins.loop.loop import Loop

__all__ = ["Loop", "evaluate"]
