"""scikit-learn's interface: `MultiLabelClassifier` and `SequenceTagger`, for pipelines, cross-validation and searches.

    from spen_plugins.sklearn import MultiLabelClassifier

    MultiLabelClassifier(method="nce").fit(X, Y).predict(X)

Needs scikit-learn 1.6 or newer: `pip install 'spen-plugins[sklearn]'`.
"""

try:
    from spen_plugins.sklearn.labels import MultiLabelClassifier
    from spen_plugins.sklearn.tags import SequenceTagger
except ImportError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ImportError("spen_plugins.sklearn needs scikit-learn 1.6: pip install 'spen-plugins[sklearn]'") from error

__all__ = ["MultiLabelClassifier", "SequenceTagger"]
