"""Pipelines that cannot be saved, and files of them that are forged or damaged."""

import contextlib
import copy

import numpy as np
import pytest
from checks import refused, same
from pipeline_cases import NAMES, NUMBERS, TARGETS, TEXTS, inner, saved
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.random_projection import SparseRandomProjection

import structsolve
from structsolve import StructuredSVM
from structsolve.utils import container

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:sklearn"),
]


class Cleaner(TransformerMixin, BaseEstimator):
    """Of no package: files cannot hold it."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X


class StandardScaler2(StandardScaler):
    """A class of its own."""


UNSAVED = [
    (
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "step 'kneighborsclassifier' of steps of Pipeline is a sklearn.neighbors.*joblib or skops",
    ),
    (
        make_pipeline(make_pipeline(Cleaner()), StructuredSVM("multiclass")),
        "step 'cleaner' of steps of step 'pipeline' of steps of Pipeline is a .*Cleaner.*plugin",
    ),
    (make_pipeline(StandardScaler2(), StructuredSVM("multiclass")), "StandardScaler2"),
    (
        make_pipeline(FunctionTransformer(lambda X: X), StructuredSVM("multiclass")),
        "func of step 'functiontransformer' of .* is <function .*NumPy only.*joblib or skops",
    ),
    (
        make_pipeline(FunctionTransformer(len, validate=False), LogisticRegression()),
        "func of step 'functiontransformer'",
    ),
    (
        Pipeline([("a", MaxAbsScaler()), ("b", StructuredSVM("multiclass"))], memory="folder"),
        r"memory is 'folder', which files must not hold; set_params\(memory=None\)",
    ),
    (
        make_pipeline(
            MaxAbsScaler(), GridSearchCV(StructuredSVM("multiclass"), {"alpha": [0.1, 1]}, cv=2)
        ),
        "step 'gridsearchcv' of .*GridSearchCV.*save its best_estimator_",
    ),
    (GridSearchCV(StandardScaler(), {}, scoring=lambda *_: 0, cv=2), "best_estimator_"),
]


@pytest.mark.parametrize(("made", "message"), UNSAVED, ids=lambda one: type(one).__name__)
def test_what_cannot_be_saved_is_named_with_its_place(made, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = copy.deepcopy(made)
    if not any(isinstance(step, FunctionTransformer) for step in inner(made)):
        made.fit(NUMBERS, TARGETS)
    path = tmp_path / "p.structsolve"
    path.write_bytes(b"before")
    refused(message, structsolve.save, made, path)
    assert path.read_bytes() == b"before"


def test_a_model_of_functions_is_named_with_its_step(tmp_path):
    class Odd(structsolve.solvers.BCFW):
        name = "odd"

    made = make_pipeline(StandardScaler(), StructuredSVM("multiclass", solver=Odd()))
    made.fit(NUMBERS, TARGETS)
    refused(
        "step 'structuredsvm' .*'solver' .* cannot be saved",
        structsolve.save,
        made,
        tmp_path / "p.structsolve",
    )


def test_values_that_files_cannot_hold(tmp_path):
    path = tmp_path / "p.structsolve"
    scaler = StandardScaler().fit(NUMBERS)
    scaler.extra_ = np.ma.masked_array([1.0], [True])
    refused("extra_ of StandardScaler is an array", structsolve.save, scaler, path)
    scaler.extra_ = [np.zeros(2, dtype=[("a", int)])]
    refused("extra_ of StandardScaler is an array", structsolve.save, scaler, path)
    vectorizer = CountVectorizer(input="filename")
    refused("input is 'filename'", structsolve.save, vectorizer, path)
    for wrong in (3, [StandardScaler()], StandardScaler, None):
        refused("which structsolve.save does not know", structsolve.save, wrong, path)
    for unfitted in (StandardScaler(), make_pipeline(StandardScaler(), PCA())):
        with pytest.raises(NotFittedError):
            structsolve.save(unfitted, path)
    with pytest.raises(NotFittedError):
        structsolve.save(StructuredSVM("multiclass"), path)
    assert not path.exists()


def test_another_version_of_scikit_learn_is_told(tmp_path):
    path = saved(make_pipeline(MaxAbsScaler()).fit(NUMBERS), tmp_path)
    meta, arrays = container.read(path, "model")
    container.write(path, "model", meta | {"sklearn": "0.1"}, arrays)
    with pytest.warns(UserWarning, match=r"written with scikit-learn 0\.1"):
        structsolve.load(path)


# What a file may not hold, in place of the state of a step.
FORGED = [
    ({"object": ["os:system", {}]}, "no class that files may hold"),
    ({"object": ["subprocess:Popen", {"args": "ls"}]}, "no class"),
    ({"object": ["sklearn.preprocessing:StandardScaler2", {}]}, "no class"),
    ({"object": ["sklearn.neighbors:KNeighborsClassifier", {}]}, "no class"),
    ({"object": ["structsolve:StructuredSVM", {}]}, "no class"),
    ({"object": ["structsolve:load", {}]}, "no class"),
    ({"object": ["structsolve:hookspecs", {}]}, "no class"),
    ({"object": ["structsolve.cli.main:main", {}]}, "no class"),
    ({"object": ["sklearn.preprocessing:StandardScaler", {"transform": 1}]}, "sets 'transform'"),
    ({"object": ["sklearn.preprocessing:StandardScaler", {"__class__": 1}]}, "sets '__class__'"),
    ({"object": ["sklearn.preprocessing:StandardScaler", {"with_mean": 3}]}, "with_mean"),
    ({"object": ["sklearn.pipeline:Pipeline", {"steps": [], "memory": "/tmp"}]}, "'memory'"),
    ({"object": ["sklearn.pipeline:Pipeline", {}]}, "found no steps"),
    (
        {"object": ["sklearn.pipeline:FeatureUnion", {"transformer_list": [], "n_jobs": 9}]},
        "n_jobs",
    ),
    (
        {"object": ["sklearn.feature_extraction.text:CountVectorizer", {"input": "filename"}]},
        "'input'",
    ),
    (
        {
            "object": [
                "sklearn.feature_extraction:DictVectorizer",
                {"vocabulary_": {"dict": {"a": 0, "b": 10**6}}},
            ]
        },
        "vocabulary are not 0 to 1",
    ),
    ({"function": "os:system"}, "no function"),
    ({"function": "numpy:load"}, "no function"),
    ({"function": "sklearn.feature_selection:SelectKBest"}, "no function"),
    ({"type": "O9999999"}, "dtype"),
    ({"dtype": "S999999999"}, "dtype"),
    ({"scalar": ["<U99999999", "a"]}, "dtype"),
    ({"array": [99, False]}, "KeyError"),
    ({"model": 0}, "IndexError"),
    ({"sparse": ["dia_matrix", [1, 1], 0, 0, 0]}, "unknown kind"),
    ({"sparse": ["csr_matrix", [1, 1], 0, 0, 0]}, ""),
    ({"objects": [[2, 2], [1]]}, "reshape"),
    ({"eval": "1"}, "unknown kind"),
    ({}, ""),
    ({"a": 1, "b": 2}, ""),
]


@pytest.mark.parametrize(("value", "message"), FORGED)
def test_forged_files_are_refused(value, message, tmp_path):
    path = saved(make_pipeline(MaxAbsScaler()).fit(NUMBERS), tmp_path)
    meta, arrays = container.read(path, "model")
    meta["pipeline"]["object"][1]["steps"][0]["tuple"][1] = value
    container.write(path, "model", meta, arrays)
    refused(f"cannot be loaded: .*{message}", structsolve.load, path)


def test_broken_sparse_matrices_are_refused(tmp_path):
    made = SparseRandomProjection(3, random_state=0).fit(NUMBERS)
    path = saved(made, tmp_path)
    meta, arrays = container.read(path, "model")
    name = next(name for name, array in arrays.items() if array.dtype.kind == "i")
    arrays[name][-1] = 10**6
    container.write(path, "model", meta, arrays)
    refused("sparse matrix is broken", structsolve.load, path)


def test_damaged_files_are_refused(tmp_path):
    made = make_pipeline(CountVectorizer(), PCA(2), StructuredSVM("multiclass"))
    path = saved(made.fit(TEXTS, NAMES), tmp_path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    expected = made.decision_function(TEXTS)
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        refused("empty|cut short|damaged|not a structsolve file", structsolve.load, path)
    read = 0
    for _ in range(400):
        wrong = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.integers(1, 4)):
            wrong[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(wrong)
        try:
            again = structsolve.load(path)
        except ValueError as error:
            assert str(path) in str(error)
            continue
        # Bytes that no content depends on: dates, attributes.
        same(again.decision_function(TEXTS), expected)
        read += 1
    assert read < 200


def test_values_of_any_kind_in_any_place_never_crash(tmp_path):
    made = make_pipeline(
        make_union(CountVectorizer(), TfidfVectorizer()), PCA(2), StructuredSVM("multiclass")
    )
    path = saved(made.fit(TEXTS, NAMES), tmp_path)
    meta, arrays = container.read(path, "model")
    rng = np.random.default_rng(1)
    values = [None, True, -1, 2**70, 0.5, float("nan"), "x", [], [[]], {"dict": {}}]
    values += [forged for forged, _ in FORGED]
    for _ in range(300):
        other = copy.deepcopy(meta)
        holder = other["pipeline"]
        while True:  # down a random way, to a random depth
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            key = keys[int(rng.integers(len(keys)))]
            if isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.9:
                holder = holder[key]
                continue
            holder[key] = values[int(rng.integers(len(values)))]
            break
        container.write(path, "model", other, arrays)
        try:
            again = structsolve.load(path)
        except ValueError as error:
            assert "cannot be loaded" in str(error)
            continue
        with contextlib.suppress(Exception):  # scikit-learn says why it cannot predict
            again.predict(TEXTS)
