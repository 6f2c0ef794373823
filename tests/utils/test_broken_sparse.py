"""Sparse matrices with inconsistent arrays are refused before SciPy reads them."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused

from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, Sequences, StructuredSVM
from structsolve.utils.sparse import as_csr, csr_of, refuse_broken

HUGE = np.iinfo(np.int32).max


def matrix(kind, seed=0):
    """Return a valid sparse matrix of shape (6, 4) with entries in every row."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.5)
    dense[:, 1] = 1.0
    return (
        sp.bsr_matrix(dense, blocksize=(2, 2))
        if kind == "bsr"
        else sp.coo_matrix(dense).asformat(kind)
    )


def damaged(kind):
    """Return pairs of a name and a matrix with one invalid array."""
    if kind in ("csr", "csc", "bsr"):
        faults = {
            "pointer out of order": ("indptr", 1, HUGE),
            "negative pointer": ("indptr", 1, -5),
            "first pointer": ("indptr", 0, 2),
            "last pointer": ("indptr", -1, HUGE),
            "last pointer zero": ("indptr", -1, 0),
            "huge index": ("indices", 0, HUGE),
            "negative index": ("indices", 2, -1),
            "index of one too many": ("indices", -1, 6 if kind == "csc" else 4),
        }
        for name, (array, place, value) in faults.items():
            X = matrix(kind)
            getattr(X, array)[place] = value
            yield name, X
        for name, array in (
            ("few pointers", "indptr"),
            ("few indices", "indices"),
            ("few values", "data"),
        ):
            X = matrix(kind)
            setattr(X, array, getattr(X, array)[:-2].copy())
            yield name, X
        X = matrix(kind)
        X.indices = X.indices.astype(float)
        yield "indices of float", X
    elif kind == "coo":
        for name, array, value in (
            ("huge row", "row", HUGE),
            ("negative column", "col", -1),
            ("column of one too many", "col", 4),
        ):
            X = matrix(kind)
            getattr(X, array)[1] = value
            yield name, X
        X = matrix(kind)
        X.data = X.data[:-1]
        yield "few values", X
    else:
        X = matrix(kind)
        X.offsets = np.concatenate([X.offsets, X.offsets])
        yield "too many offsets", X


CASES = [
    pytest.param(X, id=f"{kind}: {name}")
    for kind in ("csr", "csc", "bsr", "coo", "dia")
    for name, X in damaged(kind)
]


@pytest.mark.parametrize("X", CASES)
def test_broken_matrices_are_named(X):
    refused(r"^X: the sparse matrix is broken: ", refuse_broken, X)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_sound_matrices_become_csr(kind):
    X = matrix(kind)
    assert (as_csr(X).toarray() == X.toarray()).all()
    assert as_csr(X).format == "csr"


def test_arrays_longer_than_the_last_pointer_are_sound():
    X = matrix("csr")
    longer = csr_of(np.append(X.data, 9.0), np.append(X.indices, 77), X.indptr, X.shape)
    assert (longer.toarray() == X.toarray()).all()


@pytest.mark.parametrize("shape", [(6,), (6, 4, 1), (-6, 4), (7, 4), (6, 1)])
def test_arrays_that_do_not_fit_the_shape(shape):
    X = matrix("csr")
    refused(r"^weights: ", csr_of, X.data, X.indices, X.indptr, shape, "weights")


@pytest.mark.parametrize("X", CASES)
def test_estimators_refuse_broken_features(X):
    y = [0, 1, 0, 1, 0, 1]
    for model in (
        StructuredSVM("multiclass"),
        StructuredSVM("multiclass", kernel="rbf"),
        ConditionalRiskMinimizer("multiclass"),
    ):
        refused("broken|row|indptr", model.fit, X, y)
        model.fit(matrix("csr"), y)
        refused("broken|row|indptr", model.predict, X)


@pytest.mark.parametrize("X", CASES)
def test_sequences_refuse_broken_features(X):
    Y = [[0, 1, 0, 1, 0, 1]]
    with pytest.raises(ValueError, match="example 0: the sparse matrix is broken"):
        StructuredSVM("chain").fit([X], Y)
    with pytest.raises(ValueError, match="broken"):
        StructuredSVM("chain").fit(Sequences(X, [6]), Y)


@pytest.mark.parametrize("Y", CASES)
def test_label_sets_refuse_broken_labels(Y):
    X = np.eye(6)
    with pytest.raises(ValueError, match="^y: "):
        StructuredSVM("multilabel").fit(X, Y)
    with pytest.raises(ValueError, match="^y: "):
        HierarchicalSVM([[0, 1], [0, 2], [2, 3]]).fit(X, Y)
