"""Labels of different shapes have no average, also where their numbers of nodes are equal."""

import numpy as np
import pytest
from checks import refused

from structsolve import ConditionalRiskMinimizer


@pytest.mark.parametrize(
    "structure, shapes, labels, told",
    [
        ("grid", [(3, 2), (2, 3)], [np.eye(3, 2, dtype=int), np.eye(2, 3, dtype=int)], "2 rows"),
        ("alignment", [(3, 2), (2, 3)], [[0, 1, -1], [0, 1]], "2 parts of a label"),
        ("permutation", [(1, 6), (2, 3)], [[3], [0, 1]], "2 parts of a label"),
    ],
)
def test_shapes_of_as_many_nodes(structure, shapes, labels, told):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(*shape, 1)) for shape in shapes]
    model = ConditionalRiskMinimizer(structure, kernel="linear", alpha=0.1)
    refused(f"example 1: found {told}, example 0 has", model.fit, X, labels)
    model.fit(X[:1] * 3, labels[:1] * 3)
    refused(f"example 1: found {told}, expected . as in training", model.predict, X)
    assert np.array_equal(model.predict(X[:1])[0], labels[0])
