"""One-vs-rest logistic regression, by scikit-learn: the linear baseline of label sets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from pydantic import Field, PositiveFloat

from spen_plugins.batch import Batch
from spen_plugins.builtin.features.ngrams import Bag
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.trainers.phases import frozen_except
from spen_plugins.errors import ConfigError
from spen_plugins.model import Model
from spen_plugins.spaces import LabelSet
from spen_plugins.task import Task
from spen_plugins.trainer import Stage, Trainer, TrainerConfig

_BATCH_SIZE = 1024


class OneVsRest(Trainer):
    """A logistic regression for each label, with an L2 penalty, fitted by LIBLINEAR and kept in net `independent`, with
    a bias, over features `bag`. Each strength of the penalty has a stage; the best model on validation is kept.

    A label that all training examples have, or none, has the constant probability (k + ½) / (n + 1) for k of n. Classes
    and examples have the task's weights, as scikit-learn's `class_weight` and `sample_weight`.
    """

    class Config(TrainerConfig):
        c: list[PositiveFloat] = Field([0.1, 1.0, 10.0], min_length=1)
        """Inverse strengths of the penalty, from which the validation score chooses."""
        tolerance: float = Field(1e-4, gt=0)
        """The solver's tolerance."""

    config: Config

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        if len(set(config.c)) < len(config.c):
            raise ConfigError(f"trainer.c: found {config.c}; expected each number once")
        self._design: tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None] | None = None

    def stages(self, model: Model, task: Task) -> list[Stage]:
        net = model.inference_net
        if not (isinstance(net, Independent) and isinstance(net.features, Bag) and isinstance(task.space, LabelSet)):
            raise ConfigError(
                "trainer 'one_vs_rest' requires inference_net 'independent' over features 'bag' and label sets; "
                f"found {type(net).__name__} over {type(net.features).__name__}"
            )
        if net.output.bias is None:
            raise ConfigError("trainer 'one_vs_rest' requires inference_net.bias=true")
        # Nothing is learned in batches: one example is enough.
        fields = {"frozen": frozen_except(model), "examples": task.part("train")[:1]}
        return [
            Stage(f"C={c:g}", (), epochs=1, start=partial(self._fit, task, c), goes_on=i > 0, **fields)
            for i, c in enumerate(self.config.c)
        ]

    def protocol(self) -> dict[str, Any]:
        choice = f"the best on validation of {', '.join(f'{c:g}' for c in self.config.c)}"
        strength = choice if len(self.config.c) > 1 else f"{self.config.c[0]:g}"
        return {"training": f"one-vs-rest logistic regression (LIBLINEAR, L2), C {strength}"}

    def _fit(self, task: Task, c: float, model: Model) -> None:
        from sklearn.linear_model import LogisticRegression

        net: Any = model.inference_net
        if self._design is None:
            self._design = _make_design(net.features, task)
        x, gold, weights, classes = self._design
        weight, bias = np.zeros(net.output.weight.shape), np.zeros(net.output.bias.shape)
        for label, has_label in enumerate(gold.T):
            k, n = int(has_label.sum()), len(has_label)
            if k in (0, n):
                bias[label] = np.log((k + 0.5) / (n - k + 0.5))
                continue
            class_weight = None if classes is None else dict(enumerate(classes[:, label].tolist()))
            learner = LogisticRegression(C=c, solver="liblinear", tol=self.config.tolerance, class_weight=class_weight)
            regression = learner.fit(x, has_label, weights)
            weight[label], bias[label] = regression.coef_[0], regression.intercept_[0]
        with torch.no_grad():
            net.output.weight.copy_(torch.from_numpy(weight))
            net.output.bias.copy_(torch.from_numpy(bias))


def _make_design(features: Bag, task: Task) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """The training examples that have gold: features `(example, size)`, sparse unless they are vectors; gold, boolean
    `(example, label)`; weights of examples `(example,)` and classes `(2, label)`, None if they are all 1."""
    from scipy import sparse

    def read_batches() -> Iterator[Batch]:
        examples = task.part("train")
        for start in range(0, len(examples), _BATCH_SIZE):
            batch = task.collate(examples[start : start + _BATCH_SIZE])
            if batch.gold is not None:
                yield batch

    device = next(features.buffers(), torch.empty(0)).device
    features.learn(batch.x for batch in read_batches())
    rows, gold, weights, classes = [], [], [], None
    for batch in read_batches():
        is_labelled = batch.labelled.numpy()
        gold.append(batch.gold[:, 0].numpy()[is_labelled] > 0.5)
        weights.append(batch.weigh(torch.ones(len(batch), dtype=torch.float64)).numpy()[is_labelled])
        classes = None if batch.class_weights is None else batch.class_weights.double().numpy()
        if "vector" in batch.x.inputs:
            rows.append(batch.x.inputs["vector"].numpy()[is_labelled])
            continue
        row, column, value = (part.cpu().numpy() for part in features.lists(batch.to(device).x))
        matrix = sparse.csr_matrix((value.astype(np.float64), (row, column)), (len(batch), features.output_dim))
        rows.append(matrix[np.flatnonzero(is_labelled)])
    design = np.concatenate(rows).astype(np.float64) if isinstance(rows[0], np.ndarray) else sparse.vstack(rows).tocsr()
    example_weights = np.concatenate(weights)
    return design, np.concatenate(gold), None if (example_weights == 1).all() else example_weights, classes
