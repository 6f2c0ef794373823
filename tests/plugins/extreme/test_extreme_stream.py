"""partial_fit of ExtremeSVM's default: kept rows, new classes, bounded memory."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded, same
from extreme_cases import documents

from structsolve import ExtremeSVM
from structsolve.plugins.extreme import kept_rows
from structsolve.plugins.extreme.kept_rows import KeptRows


@pytest.fixture(scope="module")
def data():
    return documents()


def streamed(X, y, ends, **settings):
    model = ExtremeSVM(random_state=0, **settings)
    for first, last in zip([0, *ends], [*ends, len(y)], strict=True):
        model.partial_fit(X[first:last], y[first:last])
    return model


def test_chunks_are_a_fit_of_all_rows(data):
    X, y = data
    whole = ExtremeSVM(random_state=0).fit(X, y)
    for ends in ([], [20], [15, 30, 31, 45]):
        model = streamed(X, y, ends)
        same(model.classes_, whole.classes_)
        same(model.coef_.toarray(), whole.coef_.toarray())
        assert model.settings_["seen_rows"] == model.settings_["kept_rows"] == len(y)
    assert [record["pass"] for record in model.history_] == list(range(1, model.n_iter_ + 1))


def test_later_chunks_bring_classes(data):
    X, y = data
    order = np.argsort(-y, kind="stable")  # each new class is the first of all
    names = np.array([f"class {c:02}" for c in range(12)])
    model = streamed(X[order], names[y[order]], [40, 41, 50, 59])
    whole = ExtremeSVM(random_state=0).fit(X[order], names[y[order]])
    same(model.classes_, names)
    same(model.predict(X), whole.predict(X))
    message = "y holds int64, but the model was trained on classes of type"
    refused(message, model.partial_fit, X, y)
    same(model.classes_, names)


def test_named_classes_are_all(data):
    X, y = data
    model = ExtremeSVM().partial_fit(X, y, classes=np.arange(14))
    same(model.classes_, np.arange(14))
    message = "classes is not the same as in the first call, which had 14"
    refused(message, model.partial_fit, X, y, classes=np.arange(13))
    refused("y, entry 0: found class 12", ExtremeSVM().partial_fit, X, y + 12, classes=range(12))


def test_few_new_rows_wait(data):
    X, y = data
    model = ExtremeSVM(random_state=0).partial_fit(X, y)
    first, passes, n = model.coef_.toarray(), model.n_iter_, len(y)
    least = int(np.ceil(n * 0.05 / 0.95))
    for _ in range(least - 1):
        model.partial_fit(X[:1], y[:1])
    same(model.coef_.toarray(), first)
    assert model.n_iter_ == passes and model.settings_["kept_rows"] == n + least - 1
    model.partial_fit(X[:1], y[:1])
    assert model.n_iter_ > passes and np.abs(model.coef_.toarray() - first).max() > 0


def test_sample_weights_are_kept(data):
    X, y = data
    weights = np.random.default_rng(0).random(len(y)) + 0.1
    whole = ExtremeSVM(random_state=0).fit(X, y, sample_weight=weights)
    model = ExtremeSVM(random_state=0)
    model.partial_fit(X[:20], y[:20], sample_weight=weights[:20])
    model.partial_fit(X[20:], y[20:], sample_weight=weights[20:])
    same(model.coef_.toarray(), whole.coef_.toarray())


def test_kept_rows_are_a_uniform_sample_within_the_limit(monkeypatch):
    monkeypatch.setattr(kept_rows, "MOST_VALUES", 500)
    rng, times = np.random.default_rng(0), np.zeros(300)
    for _ in range(200):
        # Rows of one value, which is their number; ROW more values each.
        order, kept = rng.permutation(300), None
        for part in np.split(order, [10, 150, 151]):
            X = sp.csr_matrix(part[:, None].astype(np.float32) + 1)
            more = KeptRows.of(X, part.astype(np.int32), None, 0 if kept is None else kept.seen)
            kept = more if kept is None else kept.joined(more)
            assert kept.X.nnz + kept_rows.ROW * len(kept.y) <= 500
        assert kept.seen == 300 and len(kept.y) == 100
        same(kept.X.toarray().ravel() - 1, kept.y)
        times[kept.y] += 1
    # 200 draws with a chance of 1/3.
    assert times.min() > 66.7 - 5 * 6.7 and times.max() < 66.7 + 5 * 6.7


def test_streams_beyond_the_limit(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(kept_rows, "MOST_VALUES", X.nnz // 2)
    model = streamed(X, y, [20, 40])
    assert model.settings_["seen_rows"] == len(y)
    assert 0.2 * len(y) < model.settings_["kept_rows"] < 0.6 * len(y)
    same(model.classes_, np.unique(y))
    # One row beyond the limit is kept: training needs one.
    monkeypatch.setattr(kept_rows, "MOST_VALUES", 1)
    assert len(KeptRows.of(X, y.astype(np.int32), None).y) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_on(data, copied):
    X, y = data
    model = streamed(X[:30], y[:30], [15])
    other = copied(model)
    for one in (model, other):
        one.partial_fit(X[30:], y[30:])
    same(model.coef_.toarray(), other.coef_.toarray())


def test_without_rows_memoir_goes_on(data, tmp_path):
    X, y = data
    kept = ExtremeSVM(random_state=0).partial_fit(X, y)
    for model in (ExtremeSVM(random_state=0).fit(X, y), reloaded(kept, tmp_path)):
        model.partial_fit(X, y)
        assert model.solver_.name == "memoir" and "kept_rows" not in model.settings_
        refused("y, entry 0: found class 12", model.partial_fit, X, y + 12)
    # A failure leaves the model and its rows as they were.
    refused("y, entry 0: found class", kept.set_params(solver="memoir").partial_fit, X, y + 12)
    assert kept.set_params(solver="auto").partial_fit(X, y).settings_["seen_rows"] == 2 * len(y)
