"""Files of ExtremeSVM: content, size, memory maps, and errors."""

import copy
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded, same
from container_cases import is_mapped
from extreme_cases import Plain, documents

import structsolve
from structsolve import ExtremeSVM
from structsolve.plugins.extreme.pruning import prune_to_error, threshold_keeping
from structsolve.plugins.extreme.solvers.choice import SelfChoice
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.solvers.rivals import CertifiedRivals
from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.surrogates import Margin
from structsolve.utils import container


@pytest.fixture(scope="module")
def data():
    return documents(600, 100, 300)


@pytest.fixture(scope="module")
def trained(data):
    model = ExtremeSVM(solver=Plain(intercept=True), max_iter=1).fit(*data)
    model.metadata_ = {"source": "test"}
    return model.calibrate(*documents(300, 100, 300, seed=4))


@pytest.fixture
def model(trained):
    return copy.deepcopy(trained)


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "m.structsolve")
    return tmp_path / "m.structsolve"


# -- round trips ------------------------------------------------------------------------------


def test_a_loaded_model_answers_the_same(model, data, tmp_path):
    X, y = data
    again = reloaded(model, tmp_path)
    same(again.predict_topk(X), model.predict_topk(X))
    same(again.predict_proba(X), model.predict_proba(X))
    same(again.coef_.toarray(), model.coef_.toarray())
    same(again.intercept_, model.intercept_)
    for name in ("classes_", "history_", "n_iter_", "stop_reason_", "settings_", "metadata_"):
        same(getattr(again, name), getattr(model, name))
    assert again.get_params(deep=False) == {**model.get_params(deep=False), "solver": "plain"}
    again.save(tmp_path / "n.structsolve")
    assert (tmp_path / "n.structsolve").stat().st_size > 1000


@pytest.mark.parametrize("names", [np.array([3, 5, 8]), np.array(["ä", "b", "x y"])])
def test_classes_of_any_kind(tmp_path, names):
    X, y = documents(40, 3, 20)
    model = ExtremeSVM(solver=Plain()).fit(X, names[y])
    again = reloaded(model, tmp_path)
    same(again.classes_, model.classes_)
    same(again.predict(X), model.predict(X))


def test_settings_that_are_objects(tmp_path, data):
    settings = {
        "rivals": CertifiedRivals(0.2),
        "surrogate": Margin(),
        "max_memory": np.float64(9e9),
    }
    model = ExtremeSVM(solver=Plain(), max_iter=1, n_jobs=2, verbose=1, **settings)
    again = reloaded(model.set_params(verbose=0).fit(*data), tmp_path)
    assert repr(again.rivals) == "CertifiedRivals(epsilon=0.2)"
    assert repr(again.surrogate) == repr(Margin()) and again.max_memory == 9e9
    assert again.n_jobs == 1 and again.checkpoint is None


@pytest.mark.pandas
def test_names_of_features_are_kept(tmp_path, data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X.toarray(), columns=[f"ü {f}" for f in range(300)])
    again = reloaded(ExtremeSVM(solver=Plain(), max_iter=1).fit(frame, y), tmp_path)
    assert again.feature_names_in_.tolist() == list(frame.columns)


# -- types of weights -------------------------------------------------------------------------


def test_half_precision_takes_two_bytes_less_a_weight(model, data, tmp_path):
    X, y = data
    whole, half = tmp_path / "whole", tmp_path / "half"
    model.save(whole, dtype="float32")
    model.save(half, dtype="float16")
    nnz = model.coef_.nnz
    assert whole.stat().st_size - half.stat().st_size == pytest.approx(2 * nnz, abs=200)
    assert half.stat().st_size == pytest.approx(6 * nnz, rel=0.15)
    again = structsolve.load(half)
    weights = model.coef_
    weights.data = weights.data.astype(np.float16).astype(np.float32)
    same(again.coef_.toarray(), weights.toarray())
    assert abs(again.score(X, y) - model.score(X, y)) < 0.002
    # Loaded weights stay half as large.
    again.save(tmp_path / "again")
    assert (tmp_path / "again").stat().st_size == half.stat().st_size
    mapped = structsolve.load(half, mmap=True)
    same(mapped.predict_topk(X), again.predict_topk(X))


def test_wrong_types_of_weights(model, tmp_path):
    for dtype in ("int8", "float64", "half a byte", 7):
        refused("expected .?'?float", model.save, tmp_path / "m", dtype=dtype)
    model._weights = Postings.from_matrix(sp.csr_matrix(1e6 * np.eye(300, 100)))
    refused("float16 has at most 65504", model.save, tmp_path / "m", dtype="float16")
    assert not os.path.exists(tmp_path / "m")


# -- maps -------------------------------------------------------------------------------------


def test_weights_are_mapped(model, data, path):
    X, y = data
    mapped = structsolve.load(path, mmap=True)
    assert is_mapped(mapped._weights.weights) and is_mapped(mapped._weights.classes)
    assert not is_mapped(structsolve.load(path)._weights.weights)
    same(mapped.predict_topk(X, 7), model.predict_topk(X, 7))
    same(mapped.coef_.toarray(), model.coef_.toarray())
    same(pickle.loads(pickle.dumps(mapped)).predict(X), model.predict(X))
    # A file that is replaced leaves the model as it is, and the model can be saved over its own.
    mapped.save(path)
    same(mapped.predict(X), model.predict(X))
    structsolve.load(path, mmap=True).sparsify(mb=0.05).save(path)
    assert path.stat().st_size <= 50_000
    same(mapped.predict(X), model.predict(X))


def test_other_estimators_are_read_as_ever(tmp_path):
    model = structsolve.StructuredSVM("multiclass").fit([[0.0], [1.0]], ["no", "yes"])
    model.save(tmp_path / "m")
    assert structsolve.load(tmp_path / "m", mmap=True).predict([[1.0]]).tolist() == ["yes"]


def test_settings_of_solvers_that_went_are_read_over(path, data):
    meta, arrays = container.read(path, "model")
    one = {"__extreme_solver__": "one-vs-some", "params": {"keep": 0.1, "prior": 3.0, "loss": "x"}}
    meta["params"]["solver"] = {"__extreme_solver__": "choice", "params": {"machines": one}}
    meta["params"]["rivals"] = {
        "__kind__": "rival_indexes",
        "name": "random",
        "params": {"k": 3, "rebuild": 0.5},
    }
    expected = structsolve.load(path).predict(data[0])
    container.write(path, "model", meta, arrays)
    loaded = structsolve.load(path)
    assert (loaded.solver.machines.keep, loaded.rivals.k) == (0.1, 3)
    assert (loaded.predict(data[0]) == expected).all()


# -- wrong files ------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True])
def test_cut_and_changed_files(path, mmap):
    whole = path.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(r"m\.structsolve", structsolve.load, path, mmap=mmap)
    for place in range(300, len(whole) - 3000, len(whole) // 20):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused("damaged", structsolve.load, path, mmap=mmap)


def weights_of(change):
    def apply(meta, arrays):
        arrays["postings_weights"] = change(arrays["postings_weights"])

    return apply


def entry(name, change):
    def apply(meta, arrays):
        arrays[name] = change(arrays[name])

    return apply


def setting(name, value):
    def apply(meta, arrays):
        meta["params"][name] = value

    return apply


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "change, message",
    [
        (weights_of(lambda w: w[:-1]), "weights has .* entries, expected"),
        (weights_of(lambda w: w * np.float32(np.nan)), "NaN or infinity"),
        (weights_of(lambda w: w.astype(float)), "found float64"),
        (weights_of(lambda w: w.astype(int)), "expected floating-point numbers"),
        (entry("postings_classes", lambda c: c + 100), "expected numbers that rise"),
        (entry("postings_classes", lambda c: -c), "expected numbers that rise"),
        (entry("postings_indptr", lambda p: p[::-1].copy()), "numbers that rise from 0"),
        (entry("postings_indptr", lambda p: p * 2), "numbers that rise from 0"),
        (entry("postings_intercept", lambda b: b[:5]), "intercept has 5 entries"),
        (entry("classes", lambda c: c[::-1]), "classes do not rise"),
        (entry("classes", lambda c: c[:1]), "classes do not rise"),
        (entry("classes", lambda c: c[:50]), "expected numbers that rise|intercept"),
        (setting("n_jobs", 64), "n_jobs.*no parameter that files may hold"),
        (setting("checkpoint", "/etc/passwd"), "checkpoint.*no parameter that files may hold"),
        (setting("solver", {"__extreme_solver__": "os.system", "params": {}}), "solver is 'os"),
        (setting("alpha", -1.0), "alpha is -1.0"),
        (setting("rivals", None), "rivals is None"),
        (lambda meta, arrays: meta.update(calibration=[-1.0, 0.0, 3]), "its calibration is"),
        (lambda meta, arrays: meta.update(calibration=[1.0, 0.0, 300]), "its calibration is"),
        (lambda meta, arrays: meta.update(calibration=7), "cannot be loaded"),
        (lambda meta, arrays: meta.update(settings=7), "cannot be loaded"),
        (lambda meta, arrays: meta.update(history={}), "its history is a dict"),
        (lambda meta, arrays: meta.pop("metadata"), "KeyError: 'metadata'"),
        (lambda meta, arrays: arrays.pop("classes"), "KeyError: 'classes'"),
    ],
)
def test_files_whose_parts_do_not_fit(path, change, message, mmap):
    meta, arrays = container.read(path, "model")
    change(meta, arrays)
    container.write(path, "model", meta, arrays)
    refused(f"cannot be loaded: .*{message}|{message}", structsolve.load, path, mmap=mmap)


# -- smaller models ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [None, "float16"])
def test_to_a_size_on_disk(model, data, tmp_path, dtype):
    before = model.coef_.copy()
    sizes = []
    for mb in (0.15, 0.1, 0.03):
        model.sparsify(mb=mb, dtype=dtype).save(tmp_path / "m")
        sizes.append((tmp_path / "m").stat().st_size)
        assert 0.9 * mb * 1e6 < sizes[-1] <= mb * 1e6
        kept = np.abs(model.coef_.toarray()) > 0
        # The largest weights are kept, unchanged.
        smallest = np.abs(model.coef_.data).min()
        assert np.abs(before.toarray()[~kept]).max() <= smallest * (1 + 1e-3)
        np.testing.assert_allclose(model.coef_.toarray()[kept], before.toarray()[kept], rtol=1e-3)
    size = model.coef_.nnz
    model.sparsify(mb=100)
    assert model.coef_.nnz == size


def test_to_a_loss_of_accuracy(model, data):
    X, y = documents(500, 100, 300, seed=2)
    accuracy, size = model.score(X, y), model.coef_.nnz
    exact = model.sparsify(error=0.0, X=X, y=y)
    assert exact is model and model.score(X, y) >= accuracy and model.coef_.nnz < size
    size = model.coef_.nnz
    before = model.score(X, y)
    model.sparsify(error=0.05, X=X, y=y)
    assert before - 0.05 <= model.score(X, y) and model.coef_.nnz < size
    assert model.score(*data) > 0.5


def test_without_a_goal_nothing_changes(model, data):
    before = model.coef_.toarray()
    same(model.sparsify().coef_.toarray(), before)
    assert model.sparsify(dtype="float16")._weights.weights.dtype == np.float16


def test_thresholds_against_brute_force():
    rng = np.random.default_rng(0)
    for case in range(300):
        M = sp.csr_matrix(rng.integers(-3, 4, (5, 4)) * (rng.random((5, 4)) < 0.7))
        weights = Postings.from_matrix(M)
        sizes = np.abs(weights.weights)
        for number in range(weights.nnz + 2):
            cut = threshold_keeping(weights, number)
            assert (sizes > cut).sum() <= number
            # A lower threshold would keep more.
            lower = [t for t in (0.0, *sizes) if t < cut]
            assert all((sizes > t).sum() > number for t in lower), case


def test_pruning_by_an_error_never_exceeds_it():
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = Postings.from_matrix(sp.csr_matrix(rng.normal(size=(6, 5))))
        tried = {}

        def error_of(postings, tried=tried):
            # Any pruning error, for any number of weights.
            return tried.setdefault(postings.nnz, float(rng.random()))

        allowed = float(rng.random())
        best = prune_to_error(weights, error_of, allowed)
        assert tried[best.nnz] <= tried[30] + allowed
        assert all(tried[nnz] > tried[30] + allowed for nnz in tried if nnz < best.nnz)


def test_wrong_goals(model, data):
    X, y = data
    refused("found both", lambda: model.sparsify(mb=1, error=0.1))
    refused("error= needs X and y", lambda: model.sparsify(error=0.1))
    refused("X and y belong to error=", model.sparsify, mb=1, X=X, y=y)
    refused("mb is -1, expected a finite number > 0", model.sparsify, mb=-1)
    message = "error is -0.1, expected a finite number >= 0"
    refused(message, lambda: model.sparsify(error=-0.1, X=X, y=y))
    refused("mb is 0.001, but without any weight 300 features", model.sparsify, mb=0.001)
    refused("dtype is int8", model.sparsify, mb=1, dtype="int8")


def test_solvers_inside_of_a_solver_come_back(tmp_path):
    X, y = documents()
    solver = SelfChoice(softmax=SampledSoftmax(passes=2, block=4), machines=OneVsSome(keep=0.1))
    model = ExtremeSVM(solver=solver).fit(X, y)
    other = reloaded(model, tmp_path)
    assert repr(other.solver) == repr(solver)
    same(other.fit(X, y).coef_.toarray(), model.coef_.toarray())
