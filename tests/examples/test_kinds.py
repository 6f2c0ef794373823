"""Numbers among strings, which NumPy makes strings of, are refused where they would be names."""

import numpy as np
import pytest
from checks import refused

from structsolve import ClassWeights, CostMatrix, StructuredSVM, get_structure
from structsolve.evaluation.metrics import token_report
from structsolve.io.npz import write_npz
from structsolve.plugins.extreme.metrics import precision_at_k
from structsolve.plugins.multilabel.metrics import label_set_report

ONE, CLASSES = np.eye(2), np.array(["1", "a"])
CASES = {
    "multiclass": ([*ONE], ["1", "a"], [[1, "a"], None]),
    "chain": ([ONE, ONE], [["1", "a"]] * 2, [[[1, "a"], None], None]),
    "grid": ([ONE[None]] * 2, [np.array([["1", "a"]])] * 2, [[[None, ["a", 1]]], None]),
    "mrf": ([(ONE, [(0, 1)])] * 2, [["1", "a"]] * 2, [[(b"a", "1"), None], None]),
}


@pytest.mark.parametrize("structure", CASES)
def test_allowed_labels(structure):
    X, y, allowed = CASES[structure]
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(X, y)
    told = r"example 0, node .: allowed: found \['(int|bytes)', 'str'\], expected all strings or"
    refused(told, model.predict, X, allowed=allowed)
    refused("allowed: found", model.predict, X[:1], allowed=[[np.array([1, "a"], object)] * 2])


@pytest.mark.parametrize(
    "told, call",
    [
        ("CostMatrix: classes: found", lambda: CostMatrix(1 - ONE, ["a", 1]).cost(CLASSES)),
        ("balanced: Y mixes strings", lambda: ClassWeights.balanced(["a", 1, 1])),
        ("balanced: Y, example 1: found", lambda: ClassWeights.balanced([["a"], [1, "a"]])),
        ("labels: found", lambda: token_report([CLASSES], [CLASSES], labels=["a", 1])),
        ("names: found", lambda: label_set_report(ONE, ONE, names=["a", 1])),
        ("ranked: found strings and", lambda: precision_at_k([["1"], ["a"]], [[1], ["a"]], 1)),
        ("classes: found", lambda: get_structure("multilabel").make_space(ONE, ONE, ["a", 1])),
        ("y: found", lambda: write_npz("never.npz", ONE, [1, "a"])),
        ("y, example 1: found", lambda: write_npz("never.npz", [ONE] * 2, [["a", "b"], [1, "a"]])),
        ("y mixes strings", lambda: write_npz("never.npz", [ONE] * 2, [["1", "a"], [1, 1]])),
    ],
)
def test_names(told, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(told, call)
