"""Checks of a structure in use: predictions, scores and masks of a model, on any kind of X."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.structured_svm import StructuredSVM
from ..examples.given import is_sparse
from ..potentials.calls import score
from ..potentials.linear import LinearPotentials
from ..potentials.model import LinearModel
from ..structure import calls
from ..structure.node_space import NodeSpace
from ..structure.pack import learn_space, pack
from ._case import Case
from ._declaration import equal
from ._promise import TOLERANCE
from ._training import scores

# Number of columns with one nonzero per row: packing stores them as sparse.
SPARSE_COLUMNS = 40


def check_predictions(case: Case, loss: Any) -> None:
    """``predict`` returns best labels, ``score`` is 1 minus their mean loss, masks are obeyed."""
    model, w = _model(case, loss)
    with case.promise("predict", "answers for its own sample"):
        predicted = model.predict(case.X)
    values = [case.mu[i] @ scores(case, i, w) for i in range(case.n)]
    if not case.oracle.exact:
        values = [0 * of_labels for of_labels in values]  # any label will do
    promise = "gives a label, of largest score if the oracle is exact (random weights)"
    best = _rows_of(case, "predict", promise, predicted, values)
    _check_score(case, loss, model, best)
    with case.promise("score", "accepts the result of predict() as true labels"):
        own = model.score(case.X, predicted)
    if not abs(own - 1) <= 1e-12:
        case.fail("score", "is 1 for predictions that are true", None, own, 1.0)
    _check_mask(case, model, values)


def _rows_of(
    case: Case, what: str, promise: str, predicted: Any, values: list[np.ndarray]
) -> list[int]:
    """Return the rows of predicted labels, which must be among those of largest value."""
    rows = [int(of_labels.argmax()) for of_labels in values]
    for i, of_labels in enumerate(values):
        best = of_labels[rows[i]]
        ties = np.flatnonzero(of_labels >= best - TOLERANCE * (1 + abs(best)))
        for row in [rows[i], *ties]:
            if equal(predicted[i], _unpacked(case, i, row)):
                rows[i] = int(row)
                break
        else:
            case.fail(what, promise, i, predicted[i], _unpacked(case, i, rows[i]))
    return rows


def _unpacked(case: Case, i: int, row: int) -> Any:
    """Return a label in the users' form."""
    labels, offsets = case.examples.labels.copy(), case.examples.label_offsets
    labels[offsets[i] : offsets[i + 1]] = case.labels[i][row]
    with case.promise("unpack", "accepts any labels of its examples"):
        return case.space.unpack(labels, case.examples)[i]


def _model(case: Case, loss: Any) -> tuple[Any, np.ndarray]:
    """Return an estimator with random weights, and the weights."""
    model, w = StructuredSVM(case.structure, loss=loss), case.rng.normal(size=case.layout.dim)
    model._become_fitted(case.space, LinearModel(case.space, w))
    return model, w


def _check_score(case: Case, loss: Any, model: Any, rows: list[int]) -> None:
    with case.promise("score", f"answers with loss {loss!r}"):
        told = model.score(case.X, case.Y)
        none = model.score(case.X, case.Y, sample_weight=None)
    native = case.loss(loss)
    lost = [
        calls.loss_value(native, i, case.examples.label(i), case.labels[i][row])
        for i, row in enumerate(rows)
    ]
    size = case.n if native.averaged else len(case.examples.labels)
    expected = 1 - float(np.sum(lost)) / size
    if not abs(told - expected) <= 1e-9 * (1 + abs(expected)) or none != told:
        case.fail("score", "is 1 minus the mean loss of predictions", None, told, expected)


def _check_mask(case: Case, model: Any, values: list[np.ndarray]) -> None:
    """Constraints forbid labels: the prediction is best among the remaining ones."""
    space, block = case.space, case.layout.node
    if not isinstance(space, NodeSpace) or block is None or not case.oracle.exact:
        return  # inexact oracles may miss all labels that constraints allow
    if block.shape != (len(space.classes_),):
        return
    allowed, possible = [], []
    for i in range(case.n):
        rows = case.labels[i]
        kept = rows[case.rng.integers(len(rows))]
        if len(kept) != case.sizes(i)[0] or kept.max(initial=0) >= len(space.classes_):
            return  # labels are not classes of nodes
        open_ = case.rng.random((len(kept), len(space.classes_))) < 0.6
        open_[np.arange(len(kept)), kept] = True
        allowed.append([space.classes_[row].tolist() for row in open_])
        possible.append(open_[np.arange(len(kept)), rows].all(axis=1))
    try:
        predicted = model.predict(case.X, allowed=allowed)
    except ValueError as error:
        if "takes neither allowed" in str(error):
            return
        case.fail("mask", "accepts lists of allowed labels", None, error, "no exception", error)
    promise = f"leaves the best allowed label, {allowed}"
    left = [np.where(open_, of_labels, -np.inf) for open_, of_labels in zip(possible, values)]
    _rows_of(case, "mask", promise, predicted, left)


def check_options(case: Case) -> None:
    """``fit_intercept`` decides about the constant feature, ``classes`` about the classes."""
    structure, layout = case.structure, case.layout
    if layout.node is not None and layout.n_features:
        with case.promise("make_space", f"takes fit_intercept={not case.intercept}"):
            space, _ = learn_space(structure, case.X, case.Y, fit_intercept=not case.intercept)
        # Rankings and thresholds do not use a constant feature, classes of nodes do.
        per_class = layout.node.shape == (len(getattr(case.space, "classes_", ())),)
        for flag, made in ((case.intercept, layout), (not case.intercept, space.layout)):
            if made.intercept is not flag and (per_class or not flag):
                promise = f"passes fit_intercept={flag} to its layout"
                case.fail("make_space", promise, None, made.intercept, flag)
    known = getattr(case.space, "classes_", None)
    if known is None or not isinstance(case.space, NodeSpace) or len(known) < 2:
        return
    X, Y = case.first(1)
    try:
        space, _ = learn_space(structure, X, Y, classes=known)
    except ValueError:
        return  # it refuses them
    if not np.array_equal(space.classes_, known):
        promise = "uses classes= as the classes, even if Y lacks some"
        case.fail("make_space", promise, None, space.classes_, known)


def check_sparse_looking(case: Case) -> None:
    """X with one entry per row, which packing may store as sparse, behaves like any X."""
    X = _sparse_looking(case.X)
    if X is None:
        return
    what = "on X of rows of np.eye, which pack() may store as sparse,"
    with case.promise(f"make_space {what}", "accepts it"):
        space, examples = learn_space(case.structure, X, case.Y, fit_intercept=case.intercept)
    with case.promise(f"pack {what}", "accepts it"):
        packed = pack(space, X, case.Y)
    if not np.array_equal(packed.labels, examples.labels):
        case.fail(f"pack {what}", "gives the labels of any X", None, packed.labels, examples.labels)
    twin = case.copy_of(space, packed, X)
    w = case.rng.normal(size=space.layout.dim)
    potentials = LinearPotentials(packed, space.layout)
    for i in range(twin.n):
        case.near(f"pack {what}", "keeps it", i, score(potentials, i, w), scores(twin, i, w), 1e-9)
    model = StructuredSVM(case.structure)
    model._become_fitted(space, LinearModel(space, w))
    with case.promise(f"predict {what}", "answers"):
        model.predict(X)


def _sparse_looking(X: Any) -> Any:
    """Return X with features that are rows of the identity; None if it has another form."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        return np.eye(len(X), max(SPARSE_COLUMNS, len(X)))
    if not isinstance(X, list) or not X:
        return None
    made = []
    for x in X:
        features = x[0] if isinstance(x, tuple) else x
        if not isinstance(features, np.ndarray) or features.ndim != 2 or is_sparse(features):
            return None
        eye = np.eye(len(features), SPARSE_COLUMNS)
        made.append((eye, *x[1:]) if isinstance(x, tuple) else eye)
    return made
