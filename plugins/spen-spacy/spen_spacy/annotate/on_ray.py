"""The engine for many machines, Ray Data: an actor loads the pipeline once and annotates shard after shard."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Sequence
from typing import Any

from spen_plugins import ConfigError, RunError
from spen_spacy.annotate.engines import Worker
from spen_spacy.annotate.plan import Job, Shard
from spen_spacy.annotate.shards import Done


class Actor(Worker):
    """A Ray actor, which annotates the shards of a batch."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        steps = [self.annotate(shard) for shard in batch["shard"]]
        return {name: [getattr(step, name) for step in steps] for name in Done._fields}


def require() -> None:
    """Raises a `ConfigError` if Ray Data is not installed."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its errors are raised in Python
    try:
        import ray.data  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"--engine ray requires Ray Data ({error}): pip install 'spen-spacy[ray]'") from None


def run_on_ray(
    number: int, gpus: float, address: str | None, job: Job, shards: Sequence[Shard]
) -> Generator[Done, None, None]:
    """Annotates shards in `number` actors with `gpus` GPUs each. Ray restarts killed actors and reassigns their shards.
    Without a cluster's address, Ray is started on this machine for the time of this call. `RunError` if the cluster
    can't be reached, or Ray gives up.
    """
    require()
    import ray
    from ray.exceptions import RayError

    options = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address is None:
            ray.init(num_cpus=number, include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise RunError(f"Ray can't be started{'' if address is None else f' at {address}'}: {error}") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        rows = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=len(shards))
        annotated = rows.map_batches(
            Actor,
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(size=min(number, len(shards))),
            fn_constructor_args=(job,),
            num_gpus=gpus or None,
        )
        for row in annotated.iter_rows():
            yield Done(**row)
    except RayError as error:
        raise RunError(f"Ray failed: {' '.join(str(error).split()):.500}") from error
    finally:
        ray.shutdown()
