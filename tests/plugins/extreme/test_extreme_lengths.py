"""ExtremeSVM reports rows far from length 1, which its constants are not for."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from extreme_cases import documents
from sklearn.exceptions import ConvergenceWarning

from structsolve import ExtremeSVM


@pytest.mark.parametrize("solver", ["auto", "one-vs-some", "softmax", "memoir"])
def test_rows_far_from_unit_length_are_reported(solver):
    X, y = documents()
    for factor in (0.01, 100):
        with pytest.warns(UserWarning, match=f"120 of 120 rows .*median {factor}, .*Normalizer"):
            ExtremeSVM(solver=solver).fit(factor * X, y)


def test_lengths_are_no_matter_of_few_rows_of_empty_rows_and_of_the_dual():
    X, y = documents()
    X, y = sp.vstack([X, sp.csr_matrix((30, X.shape[1]))], format="csr"), np.r_[y, y[:30]]
    few = sp.diags(np.where(np.arange(150) < 12, 50.0, 1.0)) @ X
    many = sp.diags(np.where(np.arange(150) < 13, 50.0, 1.0)) @ X
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        ExtremeSVM().fit(few, y)
        ExtremeSVM().fit(sp.csr_matrix((len(y), 4)), y)
        ExtremeSVM().fit(2.5 * X, y)
        warnings.simplefilter("ignore", ConvergenceWarning)
        ExtremeSVM(solver="dual").fit(100 * X, y)
    with pytest.warns(UserWarning, match=r"13 of 120 rows are far from length 1 \(median 1, 90% "):
        ExtremeSVM().fit(many, y)
