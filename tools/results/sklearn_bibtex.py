"""F1 by example of `MultiLabelClassifier` on bibtex, beside scikit-learn's one-vs-rest logistic regression.

    SPEN_DATA=… OMP_NUM_THREADS=1 python -m tools.results.sklearn_bibtex

All fit the training and validation rows of SEAL's split; ours hold out a fifth of them. Two to three minutes on a core.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import make_task, parse_experiment
from spen_plugins.registry import Registry
from spen_plugins.sklearn import MultiLabelClassifier
from tools.errors import end_with_message

MODELS = (
    OneVsRestClassifier(LogisticRegression()),
    MultiLabelClassifier("linear", decode="threshold"),
    MultiLabelClassifier("linear"),
    MultiLabelClassifier(decode="threshold"),
    MultiLabelClassifier(),
)


def arrays(task: Any, *parts: str) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Features `(example, feature)` and labels `(example, label)` of these parts."""
    batch = task.collate([example for part in parts for example in task.part(part)])
    columns = batch.x.inputs["indices"].numpy()
    starts = [*batch.x.inputs["offsets"].tolist(), len(columns)]
    shape = len(starts) - 1, task.inputs.size
    return sparse.csr_matrix((np.ones(len(columns), np.float32), columns, starts), shape), batch.gold[:, 0].numpy()


@end_with_message()
def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    task = make_task(parse_experiment(evaluate("labels", {"data": "bibtex"}), "labels", Registry()))
    task.load()
    (X, Y), (X_test, Y_test) = arrays(task, "train", "validation"), arrays(task, "test")
    for model in MODELS:
        predictions = model.fit(X, Y.astype(int)).predict(X_test)
        print(f"{100 * f1_score(Y_test, predictions, average='samples', zero_division=0):.1f}  {model}", flush=True)


if __name__ == "__main__":
    main()
