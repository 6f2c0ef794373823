"""Compiled code for very many classes refuses accesses outside of its arrays."""

import re

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from checks import refused
from fuzz import extreme
from sklearn.utils.fixes import parse_version

from structsolve.plugins.extreme._pairs import parse
from structsolve.plugins.extreme.solvers._dual import DualAscent
from structsolve.plugins.extreme.solvers._grouping import pair_lists, scatter
from structsolve.plugins.extreme.solvers._lsh import nearest
from structsolve.plugins.extreme.solvers._one_vs_rest import RestMachines, RestSpace
from structsolve.plugins.extreme.solvers._one_vs_some import Machines, Space
from structsolve.plugins.extreme.solvers._softmax import SoftmaxWeights
from structsolve.plugins.extreme.weights.feature_lists import checked_rows
from structsolve.plugins.extreme.weights.feature_rows import FeatureRows
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.plugins.extreme.weights.weight_table import WeightTable

REFUSED = (ValueError, TypeError, MemoryError)
IDS = np.array([[0], [7]], np.int32)
LATE = np.full(13, 12)
LATE[0] = 0


@pytest.mark.parametrize(
    "call, place, value, message",
    [
        (Machines, 1, np.zeros(3, np.uint8), "rows, own, cost and dual have 12, 3"),
        (Machines, 2, np.array([0, 2**63 - 1, -5, 12]), "begin of the classes' pairs"),
        (Machines, 2, [0, 4, 8, 12], "begin: found list"),
        (Machines, 3, np.full(12, 12, np.int32), "rows: found numbers from 12"),
        (Machines, 4, np.zeros(12, np.float32), "cost: expected finite numbers above 0"),
        (Machines, 6, sp.csr_matrix((2, 6), dtype=np.float32), "centres has shape"),
        ((Machines, "train"), 1, 4, "first is 0, last 4"),
        ((Machines, "train"), 2, Space(6, 3, 12), "space: expected one for 6 features"),
        ((Machines, "train"), 2, Space.__new__(Space), "space: expected one for 6 features"),
        ((Machines, "train"), 3, 1, "room is 1"),
        (pair_lists, 2, IDS, "rivals and wanted are of 2"),
        (pair_lists, 3, -1, "n_classes"),
        (pair_lists, 0, np.full(13, 13), "start of the examples' labels"),
        (RestMachines, 1, np.array([0, 4, 99, 12]), "start of the labels' rows"),
        (RestMachines, 2, np.full(12, 12, np.int32), "rows: found numbers from 12"),
        (RestMachines, 3, np.ones(3, np.float32), "cost has 3 entries"),
        (RestMachines, 3, np.zeros(12, np.float32), "cost: expected finite numbers above 0"),
        ((RestMachines, "train"), 1, 4, "first is 0, last 4"),
        ((RestMachines, "train"), 2, RestSpace(12, 5), "space: expected one for 12 rows, 6"),
        ((RestMachines, "train"), 2, RestSpace.__new__(RestSpace), "space: expected one for 12"),
        (scatter, 0, np.full(12, 3, np.int32), "features, entry 0: found 3"),
        (scatter, 2, np.full(3, 11), "features, entry 3: found 0"),
        (scatter, 1, None, "values"),
        (SoftmaxWeights, 0, [], "unpack"),
        (SoftmaxWeights, 5, -1, "block -1"),
        (SoftmaxWeights, 7, 2**62, "no memory"),
        (SoftmaxWeights, 6, np.ones((2, 6), bool), "dense: found bool, 2-D"),
        ((SoftmaxWeights, "steps"), 4, [], "unpack"),
        ((SoftmaxWeights, "load"), 0, None, "start"),
        (WeightTable, 1, 0, "n_classes 0"),
        ((WeightTable, "fill"), 1, None, "classes"),
        (DualAscent, 6, "hinge", "kind is 'hinge'"),
        (DualAscent, 7, 257, "most 257"),
        (DualAscent, 5, np.ones(3), "shares have 13, 12 and 3 entries"),
        (DualAscent, 4, np.full(12, 3, np.int32), "y: found numbers"),
        (DualAscent, 1, np.full(13, 99), "indptr"),
        ((DualAscent, "keep"), 0, LATE, "the rivals kept"),
        ((DualAscent, "renew"), 0, IDS, "as many columns, and 12 rows"),
        ((DualAscent, "run"), 2, 13, "last 13: expected a range of 12"),
        ((DualAscent, "run"), 0, np.full(12, 12), "order: found numbers from 12"),
        ((DualAscent, "certify"), 2, np.full((12, 2), 3, np.int32), "ids has entries of 3"),
        ((DualAscent, "certify"), 3, np.zeros((12, 1), np.float32), "arrays of 12 rows"),
        (nearest, 0, np.zeros((12, 1), np.uint64), "expected the same sizes"),
        (nearest, 2, np.full(12, 3, np.int32), "exclude has entries of 3"),
        (parse, 1, -(2**63), "least is -9223372036854775808"),
    ],
)
def test_one_argument_that_does_not_fit(call, place, value, message):
    given = extreme.sound()
    target = call
    if isinstance(call, tuple):
        made = [one for one in extreme.objects() if type(one) is call[0]][0]
        target = getattr(made, call[1])
    arguments = list(given[call])
    target(*arguments)
    arguments = list(extreme.sound()[call])
    arguments[place] = value
    refused(re.escape(message), target, *arguments, error=REFUSED)


def test_objects_that_were_never_made():
    X, y = extreme.documents()
    for kind in (SoftmaxWeights, DualAscent):
        bare, given = kind.__new__(kind), extreme.sound()
        for (owner, name), arguments in ((k, v) for k, v in given.items() if isinstance(k, tuple)):
            if owner is kind:
                with pytest.raises(ValueError, match="not made yet"):
                    getattr(bare, name)(*arguments)
    with pytest.raises(ValueError, match="not made yet"):
        Postings.__new__(Postings).pruned(0.5)
    assert Machines.__new__(Machines).entries().size == 0
    bare = FeatureRows.__new__(FeatureRows)
    refused("X has 6 features, expected 0", bare.top, X, 1)
    refused("n_features is 0", bare.freeze)


def test_making_again():
    X, y = extreme.documents()
    given = extreme.sound()
    for kind in (Postings, SoftmaxWeights, DualAscent):
        made = kind(*given[kind])
        with pytest.raises(ValueError, match="made already"):
            made.__init__(*given[kind])
    rows = FeatureRows(6, 3)
    rows.add_rows(X, np.arange(12), y, np.ones(12))
    refused("intercept has 1 entries", rows.__init__, 6, 3, np.zeros(1, np.float32))
    refused("expected 0", rows.top, X, 1)
    rows.__init__(6, 3)
    assert rows.nnz == 0 and not rows.top(X, 1)[1].any()
    failed = Postings.__new__(Postings)
    with pytest.raises(ValueError, match="weights has 0 entries"):
        failed.__init__(*given[Postings][:2], np.zeros(0, np.float32), 3)
    refused("expected 0", failed.top, X, 1)


@pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"),
    reason="this SciPy makes no CSR array of one dimension",
)
def test_rows_of_one_dimension():
    with pytest.raises(ValueError, match="sparse array of 1 dimension"):
        checked_rows(sp.csr_array(np.ones(3, np.float32)), 3)
