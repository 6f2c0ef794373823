"""Valid arguments for compiled code of very many classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from structsolve.plugins.extreme import _pairs
from structsolve.plugins.extreme.solvers import (
    _dual,
    _grouping,
    _lsh,
    _one_vs_rest,
    _one_vs_some,
    _softmax,
)
from structsolve.plugins.extreme.weights.feature_lists import Space as ScanSpace
from structsolve.plugins.extreme.weights.feature_rows import FeatureRows
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.plugins.extreme.weights.weight_table import WeightTable

# Examples, features, classes.
N, D, C = 12, 6, 3


def documents() -> tuple[Any, np.ndarray]:
    """Sparse rows of float32, and their classes."""
    X = sp.random(N, D, 0.5, "csr", np.float32, np.random.default_rng(0))
    X.sort_indices()
    return X, np.arange(N, dtype=np.int32) % C


def sound() -> dict[Any, list[Any]]:
    """Arguments by callable; of a method by its class and name."""
    X, y = documents()
    weights = X.T.tocsr()[:, :C].tocsr()
    ones, rng = np.ones(N, np.float32), np.random.default_rng(1)
    begin, examples = np.arange(0, N + 1, 4), np.arange(N, dtype=np.int32)
    lists = weights.indptr.astype(np.int64), weights.indices, weights.data
    arrays = X.indptr.astype(np.int64), X.indices, X.data
    ids = np.stack([(y + 1) % C, (y + 2) % C], axis=1).astype(np.int32)
    scores, wanted = np.zeros((N, 2), np.float32), np.ones((N, 2), np.int8)
    order, zeros, table = np.arange(N), np.zeros(N), WeightTable(D, C)
    codes = rng.integers(0, 2**60, (C, 2)).astype(np.uint64)
    softmax = [arrays, y, ones, np.zeros(C, np.float32), 1, 2, np.arange(D) < 2, 2, 0.2, 0]
    machines = [
        X,
        ones.astype(np.uint8),
        begin,
        examples,
        ones,
        0 * ones,
        None,
        "logistic",
        1.0,
        5,
        0.1,
        0,
    ]
    dual, line = [table, *arrays, y, np.ones(N), "margin", 2], b"1,2 0:1 3:.25e1\n# no\n2 4:1\n"
    return {
        _one_vs_rest.RestMachines: [X, begin, examples, ones, 0.5, 5, 0.1, 0],
        (_one_vs_rest.RestMachines, "train"): [0, C, _one_vs_rest.RestSpace(N, D), 0.1],
        _one_vs_rest.RestSpace: [N, D],
        _one_vs_some.Machines: machines,
        (_one_vs_some.Machines, "train"): [0, C, _one_vs_some.Space(D, 72, N), 72, 0.1],
        _one_vs_some.Space: [D, 72, N],
        _grouping.pair_lists: [np.arange(N + 1), y, ids, C, np.ones(N, np.uint8)],
        _grouping.scatter: [y, examples, np.arange(0, 12, 4), np.zeros(N, np.int32)],
        _softmax.SoftmaxWeights: softmax,
        (_softmax.SoftmaxWeights, "steps"): [order, 0, N, 1, (1.0, 0.5), 0.1, zeros, 0, 1],
        (_softmax.SoftmaxWeights, "load"): [*lists, 1.0],
        WeightTable: [D, C],
        (WeightTable, "fill"): [*lists],
        _dual.DualAscent: dual,
        (_dual.DualAscent, "keep"): [np.arange(N + 1), y, ones],
        (_dual.DualAscent, "renew"): [ids, wanted],
        (_dual.DualAscent, "run"): [order, 0, N, 0.0],
        (_dual.DualAscent, "certify"): [
            0, N, ids, scores, zeros + 1, False, np.zeros(N), np.zeros(N), wanted,
        ],
        _lsh.packed: [rng.normal(size=(C, 70)).astype(np.float32)],
        _lsh.nearest: [codes[y], codes, y, ids],
        ScanSpace: [Postings(*lists, C), 2, D, N],
        Postings: [*lists, C, np.zeros(C, np.float32)],
        (Postings, "top"): [X, 2, 0.1, y, 1],
        (Postings, "scores"): [X, ids],
        (Postings, "best_class"): [X[0].indices, X[0].data],
        FeatureRows: [D, C, np.zeros(C, np.float32)],
        (FeatureRows, "top"): [X, 2, 0.1, y, 1],
        (FeatureRows, "scores"): [X, ids],
        (FeatureRows, "best_class"): [X[0].indices, X[0].data],
        (FeatureRows, "add_rows"): [X, order, y, np.ones(N)],
        (FeatureRows, "soft_threshold"): [y, 0.1],
        _pairs.parse: [line, 0, D, C, False],
    }  # fmt: skip


def objects() -> list[Any]:
    """Initialised objects, and some that never were."""
    given = sound()
    postings, table = Postings(*given[Postings]), given[_dual.DualAscent][0]
    dual = _dual.DualAscent(*given[_dual.DualAscent])
    dual.renew(*given[_dual.DualAscent, "renew"])
    made = [
        postings,
        postings.as_type(np.float16),
        FeatureRows.from_postings(postings),
        table,
        dual,
        _one_vs_rest.RestMachines(*given[_one_vs_rest.RestMachines]),
        given[_one_vs_rest.RestMachines, "train"][2],
        _one_vs_some.Machines(*given[_one_vs_some.Machines]),
        given[_one_vs_some.Machines, "train"][2],
        _softmax.SoftmaxWeights(*given[_softmax.SoftmaxWeights]),
    ]
    kinds = {type(one) for one in made} - {WeightTable}
    bare = [kind.__new__(kind) for kind in sorted(kinds, key=lambda kind: kind.__name__)]
    return [*made, *made, *bare]
