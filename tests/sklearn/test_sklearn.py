"""`spen_plugins.sklearn`: scikit-learn's own checks, pipelines, searches, pickles and errors."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from pickletools import genops

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import spen_plugins as sp
from spen_plugins.data.tables.matrix import Matrix
from spen_plugins.errors import Interrupted
from spen_plugins.scores.calibration import tempered
from spen_plugins.scores.label_decoding import Fit
from spen_plugins.scores.label_scores import example_f1
from spen_plugins.sklearn import MultiLabelClassifier, SequenceTagger
from spen_plugins.sklearn.tags import find_scheme
from spen_plugins.task_parts import parse_all

FEW = {"trainer.epochs": 2, "trainer.epoch_updates": 1, "features.hidden": [8], "energy.hidden": 4}
ONE = {"trainer.epochs": 1, "trainer.epoch_updates": 1}
TAGS = {**ONE, "trainer.pretrain_epochs": 0, "features.hidden": 4, "features.word_dim": 4}
SENTENCES = [["Anna", "sleeps"], ["the", "boy", "sees", "Bob"]] * 8
NAMES = [["B-PER", "O"], ["O", "O", "O", "B-PER"]] * 8
CLASSES = [["N", "V"], ["D", "N", "V", "N"]] * 8

OTHERS = "its labels are 1 and 2 (or words, or one list of them); those of label sets are a matrix of 0 and 1"
COLUMNS = "it wants one column of predictions, or a probability for each class; label sets have a column for each label"
BATCHES = (
    "an epoch has an example of weight 2 once and a repeated one twice, in other batches; the mean loss is the same"
)
EXPECTED = {
    "check_class_weight_classifiers": OTHERS,
    "check_sample_weights_pandas_series": OTHERS,
    "check_sample_weights_not_an_array": OTHERS,
    "check_sample_weights_shape": OTHERS,
    "check_sample_weights_not_overwritten": OTHERS,
    "check_sample_weight_equivalence_on_dense_data": BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": BATCHES,
    "check_classifier_data_not_an_array": OTHERS,
    "check_classifiers_classes": OTHERS,
    "check_decision_proba_consistency": OTHERS,
    "check_estimators_dtypes": OTHERS,
    "check_fit2d_1feature": OTHERS,
    "check_classifiers_train": COLUMNS,
    "check_estimator_sparse_array": COLUMNS,
    "check_estimator_sparse_matrix": COLUMNS,
    "check_classifier_multioutput": "it wants the labels whose probability is above 0.5",
}
"""Checks of scikit-learn that a classifier of label sets fails, with reasons."""


def make_data(rows: int = 40, labels: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Returns random numbers, and labels that are linear in them."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(rows, 6)), rng.normal(size=(6, labels))
    return x, (x @ weights > 1).astype(int)


X, Y = make_data()


@pytest.fixture(scope="module")
def classifier() -> MultiLabelClassifier:
    return MultiLabelClassifier(decode="threshold", **FEW).fit(X, Y)


@pytest.fixture(scope="module")
def tagger() -> SequenceTagger:
    return SequenceTagger(**TAGS).fit(SENTENCES, NAMES)


@pytest.mark.slow
@parametrize_with_checks(
    [MultiLabelClassifier(**FEW)], expected_failed_checks=lambda estimator: EXPECTED, xfail_strict=True
)
def test_a_check_of_scikit_learn(estimator, check, monkeypatch) -> None:
    # The last bits of a float32 depend on the batch size and on the processor; differences reach 6e-7 of a logit.
    compare = estimator_checks.assert_allclose
    if getattr(check, "func", check).__name__ == "check_methods_subset_invariance":
        monkeypatch.setattr(
            estimator_checks,
            "assert_allclose",
            lambda a, b, *, atol, err_msg: compare(a, b, 1e-5, 1e-5, err_msg=err_msg),
        )
    check(estimator)


@pytest.mark.slow
def test_200_rows_of_an_easy_problem_are_learnt() -> None:
    x, y = make_data(400)
    model = MultiLabelClassifier().fit(x[:200], y[:200])
    assert f1_score(y[200:], model.predict(x[200:]), average="micro") > 0.8
    assert roc_auc_score(y[200:], model.predict_proba(x[200:])) > 0.9


# Label sets.


@pytest.mark.parametrize(
    "settings",
    [
        {"decode": "threshold"},
        {"decode": "expected_f1"},
        {"threshold": 0.3},
        {"decode": "threshold", "threshold": 0.9, "task.nonempty": True},
    ],
)
def test_answers_agree_with_predictions(settings) -> None:
    model = MultiLabelClassifier(**settings, **FEW).fit(X, Y)
    p, predicted = model.predict_proba(X), model.predict(X)
    assert p.shape == predicted.shape == Y.shape and predicted.dtype.kind == "i"
    assert_array_equal(model.decision_function(X) > 0, predicted)
    answers = model.predictor_.predict(X)
    assert [{int(name) for name in a["labels"]} for a in answers] == [set(np.flatnonzero(row)) for row in predicted]
    reported = np.array([[a["probabilities"][str(i)] for i in range(3)] for a in answers])
    np.testing.assert_allclose(p, reported, atol=1e-6)
    if (
        "task.nonempty" in settings or "expected_f1" in settings.values()
    ):  # predictions are sets of the likeliest labels
        assert model.threshold_ is None
        lowest = np.where(predicted, p, 1).min(1)
        assert (predicted.sum(1) > 0).all() and (lowest >= np.where(predicted, 0, p).max(1)).all()
    else:
        assert_array_equal(p > model.threshold_, predicted)
    if settings == {"threshold": 0.3}:  # it is a threshold on the probability before calibration
        task = model.predictor_.task
        odds = (0.3 / 0.7) ** (1 / task.temperature)
        assert task.threshold == 0.3 and model.threshold_ == pytest.approx(odds / (1 + odds))


def test_sparse_and_dense_rows_are_the_same() -> None:
    x = np.where(X > 0, X, 0)
    for matrix in (x, sparse.csr_array(x)):
        model = MultiLabelClassifier(**FEW).fit(matrix, Y)
        np.testing.assert_allclose(model.predict_proba(x), model.predict_proba(sparse.csc_matrix(x)), atol=1e-5)


def test_names_of_a_frame_are_kept(classifier) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = pandas.DataFrame(X).add_prefix("column "), pandas.DataFrame(Y, columns=["a", "b", "c"])
    model = MultiLabelClassifier(**FEW).fit(x, y)
    assert model.labels_.tolist() == ["a", "b", "c"] and model.feature_names_in_[1] == "column 1"
    assert model.predictor_.task.columns.names == list(x.columns)
    assert_array_equal(model.predict_proba(x), classifier.predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(x.rename(columns={"column 1": "other"}))


def test_an_explicit_validation_part() -> None:
    model = MultiLabelClassifier(**FEW).fit(X, Y, validation=(X[:7], Y[:7]))
    environment = model.predictor_.folder.environment()
    assert environment["training_examples"] == 40
    assert model.predictor_.folder.metrics()["protocol"]["split"] == "given in Python"
    model = MultiLabelClassifier(validation_fraction=0.5, **FEW).fit(X, Y)
    assert model.predictor_.folder.environment()["training_examples"] == 20


def test_labels_of_a_validation_frame_are_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    y = pandas.DataFrame(Y, columns=["a", "b", "c"])
    parts = [(X[:9], y[:9]), (X[:9], y[:9][["c", "a", "b"]]), (X[:9], Y[:9])]
    models = [MultiLabelClassifier(**FEW).fit(X, y, part) for part in parts]
    first, *others = (
        model.predictor_.folder.environment()["data_sha256"]["validation, given in Python"] for model in models
    )
    assert others == [first] * 2


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ((X, Y[:, :2]), "y of validation: found 2 columns; expected 3, as in training"),
        ((X, np.hstack([Y, Y])), "y of validation: found 6 columns"),
        (X, "too many values to unpack"),
        ((X, Y, Y), "too many values to unpack"),
        ((X[:, :2], Y), "X has 2 features"),
    ],
)
def test_a_validation_part_of_another_form_is_rejected(validation, message) -> None:
    with pytest.raises(ValueError, match=message):
        MultiLabelClassifier(**FEW).fit(X, Y, validation)


def test_a_validation_frame_of_other_labels_is_rejected() -> None:
    pandas = pytest.importorskip("pandas")
    y = pandas.DataFrame(Y, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="y of validation: found the column 'd'"):
        MultiLabelClassifier(**FEW).fit(X, y, (X, y.rename(columns={"c": "d"})))


def test_names_and_columns_must_be_equally_many() -> None:
    with pytest.raises(sp.DataError, match=r"found 2 names \(a, b\); expected 3 different names"):
        Matrix(Y, ("a", "b"))


def test_equal_seeds_give_equal_estimators(classifier) -> None:
    repeat, other = (MultiLabelClassifier(random_state=seed, **FEW).fit(X, Y) for seed in (0, np.random.RandomState(1)))
    assert_array_equal(repeat.predict_proba(X), classifier.predict_proba(X))
    assert (other.predict_proba(X) != classifier.predict_proba(X)).any()


@pytest.mark.parametrize("labels", [1, 2, 3])
def test_scorers_see_the_probabilities_of_all_labels(labels) -> None:
    x, y = make_data(labels=labels)
    pipeline = make_pipeline(StandardScaler(), MultiLabelClassifier(**FEW))
    scores = cross_val_score(pipeline, x, y, cv=KFold(2), scoring="roc_auc", error_score="raise")
    model = clone(pipeline).fit(x[20:], y[20:])
    assert scores[0] == pytest.approx(roc_auc_score(y[:20], model.predict_proba(x[:20])))


@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cross_validated_predictions_have_a_column_for_each_label(method, labels) -> None:
    x, y = make_data(labels=labels)
    estimator = MultiLabelClassifier(**FEW)
    answers = cross_val_predict(estimator, x, y, cv=KFold(2), method=method)
    model = clone(estimator).fit(x[20:], y[20:])
    assert answers.shape == y.shape and model.classes_.tolist() == list(range(labels))
    np.testing.assert_allclose(answers[:20], getattr(model, method)(x[:20]), atol=1e-6)


def test_a_classifier_of_label_sets_stacks_like_those_of_scikit_learn() -> None:
    others = [("forest", RandomForestClassifier(3, random_state=0)), ("ours", MultiLabelClassifier(**FEW))]
    stacked = StackingClassifier(others, KNeighborsClassifier(), cv=2).fit(X, Y)
    assert stacked.transform(X).shape == (40, 6) and stacked.predict(X).shape == Y.shape
    for method in ("predict_proba", "decision_function"):
        single = StackingClassifier(others[1:], KNeighborsClassifier(), cv=2, stack_method=method).fit(X, Y)
        assert_array_equal(single.transform(X), getattr(single.estimators_[0], method)(X))
        assert single.predict_proba(X).shape == Y.shape


@pytest.mark.parametrize("decode", ["threshold", "expected_f1", "validation"])
def test_the_decoder_has_the_highest_f1_on_validation(decode) -> None:
    assert MultiLabelClassifier().decode == "validation"
    settings = {"trainer.epochs": 4, "features.hidden": [8], "random_state": 1}
    model = MultiLabelClassifier("cross_entropy", decode=decode, **settings).fit(X, Y, validation=(X, Y))
    task, gold = model.predictor_.task, torch.from_numpy(Y) > 0
    assert task.decoder.temperature is None or decode != "threshold"
    assert task.decoder.temperature is not None or decode != "expected_f1"
    p = torch.sigmoid(torch.from_numpy(logit(model.predict_proba(X).astype(float)) * task.temperature))
    f1 = [example_f1(decoder(p), gold).mean().item() for decoder in Fit(decode, "validation").decoders()]
    chosen = torch.from_numpy(model.predict(X)) > 0
    assert example_f1(chosen, gold).mean().item() == pytest.approx(max(f1))
    assert_array_equal(model.decision_function(X) > 0, chosen)


def test_a_search_over_keys_of_the_config() -> None:
    grid = {"trainer.epochs": [1, 2], "schedule": ["light"]}
    search = GridSearchCV(MultiLabelClassifier(**FEW), grid, cv=2, scoring="f1_samples", error_score="raise").fit(X, Y)
    assert search.best_params_["schedule"] == "light"
    config = search.best_estimator_.predictor_.folder.config()
    assert config["trainer"]["epochs"] == search.best_params_["trainer.epochs"]
    assert config["features"]["hidden"] == [8]


def test_stopping_one_fit_stops_a_cross_validation(monkeypatch) -> None:
    fits = []

    def stop(*_, **settings) -> None:
        fits.append(settings)
        raise Interrupted("stopped")

    monkeypatch.setattr("spen_plugins.sklearn.base.train", stop)
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(MultiLabelClassifier(**FEW), X, Y, cv=2)
    assert len(fits) == 1


# Weights, for both.


@pytest.mark.parametrize("weights", ["balanced", {"1": 4.0}, {1: np.float64(4)}, None])
def test_class_weights_are_those_of_the_config(weights) -> None:
    model = clone(MultiLabelClassifier(class_weight=weights, **FEW)).fit(X, Y)
    expected = {"1": 4.0} if isinstance(weights, dict) else weights
    assert model.predictor_.folder.config()["task"]["class_weight"] == expected


def test_a_tagger_weighs_types_and_sentences() -> None:
    model = SequenceTagger(class_weight={"PER": 3}, **TAGS)
    model.fit(SENTENCES, NAMES, sample_weight=[1, 2] * 8)
    assert model.predictor_.folder.config()["task"]["class_weight"] == {"PER": 3.0}
    model.fit(SENTENCES, NAMES, (SENTENCES, NAMES), sample_weight=[0, 1] * 8)
    assert "Anna" not in model.predictor_.task.inputs.words
    with pytest.raises(ValueError, match=r"entity types and O.*Did you mean 'PER'"):
        model.set_params(class_weight={"PERS": 2}).fit(SENTENCES, NAMES)


def test_an_example_of_weight_0_is_left_out_and_the_scale_does_not_matter() -> None:
    rows = np.arange(len(X)) % 3 > 0
    estimator, part = MultiLabelClassifier(**FEW), (X, Y)
    expected = clone(estimator).fit(X[rows], Y[rows], part).predict_proba(X)
    assert_array_equal(clone(estimator).fit(X, Y, part, sample_weight=2.5 * rows).predict_proba(X), expected)
    other = clone(estimator).fit(X, Y, part, sample_weight=1.0 + rows).predict_proba(X)
    assert (other != expected).any()


def test_weights_are_a_list_or_a_series() -> None:
    pandas = pytest.importorskip("pandas")
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    kinds = (weights, weights.tolist(), pandas.Series(weights, index=np.arange(len(X))[::-1]))
    first, *others = (MultiLabelClassifier(**FEW).fit(X, Y, sample_weight=kind).predict_proba(X) for kind in kinds)
    for other in others:
        assert_array_equal(other, first)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "sample_weight.shape == .2,., expected .40,."),
        (np.ones((40, 3)), "Sample weights must be 1D"),
        (-np.ones(40), "Negative values in data passed to `sample_weight`"),
        (np.full(40, np.nan), "sample_weight contains NaN"),
        (np.zeros(40), "(Sample weights must contain at least one non-zero|found 0 for every example)"),
    ],
)
def test_wrong_weights_are_a_value_error(weights, message) -> None:
    with pytest.raises(ValueError, match=message):
        MultiLabelClassifier(**FEW).fit(X, Y, sample_weight=weights)


def test_weights_are_routed_by_a_cross_validation() -> None:
    with config_context(enable_metadata_routing=True):
        estimator = MultiLabelClassifier(**FEW).set_fit_request(sample_weight=True)
        result = cross_validate(
            estimator,
            X,
            Y,
            cv=2,
            scoring=lambda fitted, x, y: fitted.score(x, y),
            params={"sample_weight": np.arange(40) % 3},
            return_estimator=True,
            error_score="raise",
        )
    sizes = [fold_model.predictor_.folder.environment()["training_examples"] for fold_model in result["estimator"]]
    assert max(sizes) < 16  # a third of 20 has weight 0


# Parameters, for both.


@pytest.mark.parametrize("kind", [MultiLabelClassifier, SequenceTagger])
def test_parameters_of_the_config_are_the_estimators(kind) -> None:
    estimator = kind("crf", random_state=3, **{"trainer.epochs": 7})
    assert estimator.get_params()["trainer.epochs"] == 7 and estimator.get_params()["method"] == "crf"
    other = clone(estimator).set_params(method="nce", **{"trainer.epochs": 8, "energy.hidden": 1})
    assert other.get_params() == {**estimator.get_params(), "method": "nce", "trainer.epochs": 8, "energy.hidden": 1}
    assert estimator.get_params()["trainer.epochs"] == 7
    assert "trainer.epochs=7" in repr(estimator) and "trainer.epochs" in estimator._repr_html_()


def test_only_the_classifier_is_a_classifier() -> None:
    assert is_classifier(MultiLabelClassifier()) and not is_classifier(SequenceTagger())


# Pickles.


@pytest.mark.parametrize("name", ["classifier", "tagger"])
def test_a_pickle_has_the_files_of_a_run(name, request, tmp_path) -> None:
    estimator, items = request.getfixturevalue(name), X if name == "classifier" else SENTENCES
    files = estimator.run_.__getstate__()["files"]
    assert {"config.json", "vocabulary.json", "weights.safetensors"} <= files.keys()
    assert all(isinstance(data, bytes) for data in files.values())
    for path, data in files.items():
        (tmp_path / path).write_bytes(data)
    assert sp.load(tmp_path).task.space.shape[-1] >= 2
    code = [argument for op, argument, _ in genops(pickle.dumps(estimator, protocol=2)) if op.name == "GLOBAL"]
    own_classes = {name.split()[1] for name in code if name.startswith("spen_plugins")}
    assert own_classes == {type(estimator).__name__, "StoredRun"}
    assert {name.split()[0].partition(".")[0] for name in code} <= {"spen_plugins", "numpy", "_codecs"}
    pickled = pickle.dumps(estimator)
    for other in (pickle.loads(pickled), pickle.loads(pickle.dumps(pickle.loads(pickled))), copy.deepcopy(estimator)):
        assert_array_equal(np.concatenate(list(other.predict(items))), np.concatenate(list(estimator.predict(items))))


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_discarded_estimator_removes_its_folder_without_a_warning(monkeypatch) -> None:
    gc.collect()  # estimators of other tests
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    first = MultiLabelClassifier(**FEW).fit(X, Y)
    second = pickle.loads(pickle.dumps(first))
    folders = [estimator.predictor_.folder.path for estimator in (first, second)]
    assert all(folder.is_dir() for folder in folders)
    del first, second
    gc.collect()
    assert not unraisable and not any(folder.exists() for folder in folders)


def test_the_run_is_saved_to_a_folder(classifier, tmp_path) -> None:
    classifier.predictor_.save(tmp_path / "mine")
    assert sp.load(tmp_path / "mine").predict(X) == classifier.predictor_.predict(X)


# Tags.


def test_tags_of_spans(tagger) -> None:
    assert tagger.scheme_ == "bio" and tagger.classes_.tolist() == sorted({tag for tags in NAMES for tag in tags})
    predictions = tagger.predict(SENTENCES)
    assert {tag for tags in predictions for tag in tags} <= {"O", "B-PER", "I-PER"}
    assert [len(tags) for tags in predictions] == [len(words) for words in SENTENCES]
    assert 0 <= tagger.score(SENTENCES, NAMES) <= 1
    assert (tagger.predict([("a", "b")]) == tagger.predict([np.array(["a", "b"])])).all()


def test_tags_without_spans() -> None:
    model = SequenceTagger("cross_entropy", **ONE).fit(SENTENCES, CLASSES)
    assert model.scheme_ == "none" and model.classes_.tolist() == ["D", "N", "V"]
    predictions, gold = np.concatenate(model.predict(SENTENCES)), np.concatenate(CLASSES)
    assert model.score(SENTENCES, CLASSES) == pytest.approx((predictions == gold).mean())


def test_a_tagger_in_cross_validation() -> None:
    estimator = SequenceTagger("cross_entropy", **ONE)
    assert cross_val_score(estimator, SENTENCES, NAMES, cv=2, error_score="raise").shape == (2,)
    predicted = cross_val_predict(estimator, SENTENCES, NAMES, cv=KFold(2))
    model = clone(estimator).fit(SENTENCES[8:], NAMES[8:])
    assert predicted.shape == (16,) and (predicted[:8] == model.predict(SENTENCES[:8])).all()
    assert 0 <= model.score(SENTENCES, predicted) <= 1
    pipeline = make_pipeline(FunctionTransformer(), estimator)
    search = GridSearchCV(pipeline, {"sequencetagger__scheme": ["auto", "none"]}, cv=2, error_score="raise")
    assert len(search.fit(SENTENCES, NAMES).predict(SENTENCES)) == 16


def test_probabilities_of_tags_equal_the_reported_scores() -> None:
    model = SequenceTagger("cross_entropy", **ONE).fit(SENTENCES, CLASSES)
    model.run_.predictor.task.temperature = 1.7
    probabilities, answers = model.predict_proba(SENTENCES[:2]), model.predictor_.predict(SENTENCES[:2])
    assert probabilities.shape == (2,) and [p.shape for p in probabilities] == [(2, 3), (4, 3)]
    for p, answer in zip(probabilities, answers, strict=True):
        columns = [model.classes_.tolist().index(tag) for tag in answer["tags"]]
        np.testing.assert_allclose(p[np.arange(len(p)), columns], answer["scores"], atol=1e-4)


def test_probabilities_of_spans_are_of_the_tags_of_y(tagger) -> None:
    assert tagger.classes_.tolist() == ["B-PER", "O"]
    task, rows = tagger.predictor_.task, [SENTENCES[1], SENTENCES[0], SENTENCES[0]]
    probabilities = tagger.predict_proba(rows)
    assert [p.shape for p in probabilities] == [(4, 2), (2, 2), (2, 2)]
    [(proposal, _, _)] = tagger.predictor_.proposals(parse_all(task, rows[:1]))
    outside = tempered(proposal.mean[0, 0].detach().numpy(), task.temperature)[:, task.space.tags.index("O")]
    np.testing.assert_allclose(probabilities[0], np.stack([1 - outside, outside], 1), atol=1e-6)
    for restored in (pickle.loads(pickle.dumps(tagger)), copy.deepcopy(tagger)):
        np.testing.assert_allclose(restored.predict_proba(rows)[2], probabilities[2])


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([["N", "V"]], "none"),
        ([["O", "O"]], "none"),
        ([["O", "B-X", "I-X"]], "bio"),
        ([["O", "B-X", "E-X", "S-Y"]], "bioes"),
        ([["O", "I-X", "I-X"]], "iob1"),
        ([["O", "B-X"], ["NN"]], "none"),
    ],
)
def test_the_scheme_is_recognised(sentences, scheme) -> None:
    assert find_scheme(sentences) == scheme


# Errors.


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (sparse.csr_array(X * np.nan), Y, ValueError, "X: found no rows of finite numbers .*NaN"),
        (X * np.inf, Y, ValueError, "Input X contains"),
        (X, Y * np.nan, ValueError, "Input y contains NaN"),
        (X, 0 * Y, ValueError, "y has one class only: every label of every row is 0"),
        (X, 2 * Y, ValueError, r"y has the values \[0, 2\]; expected 0 or 1"),
        (X, sparse.csr_array(Y), TypeError, "Sparse data was passed for y, but dense data is required"),
        (X, Y[:, 0], ValueError, "expected label sets, not one class per row.*MultiLabelBinarizer"),
        (X, [["a"], ["b"]] * 20, ValueError, r"y has the values \['a', 'b'\]; expected 0 or 1 .*MultiLabelBinarizer"),
        (X, [["a"], ["a", "b"]] * 20, ValueError, "legacy multi-label data representation"),
        (X, None, ValueError, "requires y to be passed"),
        (X[:1], Y[:1], ValueError, "minimum of 2 is required"),
        (X[:3], Y, ValueError, "inconsistent numbers of samples"),
        ([["a"]] * 40, Y, ValueError, "could not convert string"),
    ],
)
def test_errors_are_those_of_scikit_learn(x, y, error, message) -> None:
    with pytest.raises(error, match=message):
        MultiLabelClassifier().fit(x, y)


def test_nan_is_a_missing_value_as_in_sp_train() -> None:
    missing = X.copy()
    missing[::5, 0] = np.nan
    fitted = MultiLabelClassifier(**FEW).fit(missing, Y)
    assert np.isfinite(fitted.predict_proba(missing)).all()
    with pytest.raises(ValueError, match="Input X contains infinity"):
        fitted.predict(X * np.inf)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "nonsense"}, "unknown method .nonsense.; known: "),
        ({"epochs": 3}, "unknown argument 'epochs'. Did you mean 'trainer.epochs'"),
        ({"trainer.epoch": 3}, "trainer.epoch"),
        ({"validation_fraction": 0.9}, "expected a number above 0, at most 0.5"),
        ({"threshold": 3}, "'task.threshold': found 3"),
    ],
)
def test_a_wrong_parameter_is_a_value_error_of_fit(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        MultiLabelClassifier(**settings).fit(X, Y)


@pytest.mark.parametrize("name", ["config", "data", "held_out", "out", "quiet", "labels", "split"])
def test_other_arguments_of_training_are_no_parameters(name) -> None:
    for estimator, data in ((MultiLabelClassifier(), (X, Y)), (SequenceTagger(), (SENTENCES, NAMES))):
        with pytest.raises(ValueError, match=f"{type(estimator).__name__} has no parameter '{name}'"):
            estimator.set_params(**{name: 1}).fit(*data)


def test_unfitted_estimators_raise_an_error() -> None:
    for predict in (MultiLabelClassifier().predict, MultiLabelClassifier().predict_proba, SequenceTagger().predict):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            predict(X)
    with pytest.raises(NotFittedError):
        _ = MultiLabelClassifier().predictor_


def test_other_features_than_in_training_are_rejected(classifier) -> None:
    with pytest.raises(ValueError, match="X has 4 features, but MultiLabelClassifier is expecting 6"):
        classifier.predict(X[:, :4])
    binary = MultiLabelClassifier(**FEW).fit(X > 0, Y)
    with pytest.raises(
        ValueError, match=r"found .* for feature 'x0'; expected 0 or 1, as in training, .*CountVectorizer"
    ):
        binary.predict(X)
    with pytest.raises(
        ValueError, match=r"found nan for feature 'x0'; expected 0 or 1, as in training, where no other value occurs$"
    ):
        binary.predict(np.full((1, 6), np.nan))


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        (SENTENCES, None, "requires y to be passed"),
        ([["a"], ["b"]], [["B-X"], [3]], "sentence 1 of train: found"),
        ([["a"], ["b"]], [["N"], [""]], "sentence 1 of train: found tags .*none of them empty"),
        (SENTENCES, NAMES[:3], r"inconsistent numbers of samples: \[16, 3\]"),
        ([["a"]], [["N"]], "found 1 rows with labels; expected at least two"),
        ([["a"], ["b"]], [["N"], ["N", "V"]], "sentence 1 of train: found 2 tags for 1 words"),
        (["a b", "c d"], [["N", "V"]] * 2, "sentence 0 of train: found words 'a b'; expected a list of strings"),
        ([["a"], ["b"]], [["O"], ["E-X"]], "the tags look like spans but follow none of bio, bioes, iob1"),
    ],
)
def test_wrong_sentences_are_value_errors(words, tags, message) -> None:
    with pytest.raises(ValueError, match=message):
        SequenceTagger().fit(words, tags)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("predict", (None,), "found one NoneType; expected a list"),
        ("predict_proba", ([["a", None]],), "expected a list of strings"),
        ("predict", ("a b",), "found one str; expected a list"),
        ("predict", ([["a", None]],), "expected a list of strings"),
        ("score", (SENTENCES, NAMES[:3]), r"inconsistent numbers of samples: \[16, 3\]"),
        ("score", ([["a"]], [["O", "O"]]), "found 2 tags for 1 words"),
    ],
)
def test_a_fitted_tagger_rejects_invalid_sentences(tagger, method, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(tagger, method)(*arguments)


def test_an_unknown_scheme_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="scheme: found 'foo'; expected one of 'auto', 'none', 'bio'"):
        SequenceTagger(scheme="foo").fit(SENTENCES, NAMES)


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn.base'] = None; import spen_plugins.sklearn"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip().splitlines()[-1].endswith("pip install 'spen-plugins[sklearn]'")
