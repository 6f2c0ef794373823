"""The conformance kit: ``check_structure`` tests a structure against brute force.

It is the counterpart of scikit-learn's ``check_estimator`` for plugin authors.  A complete
structure in plain Python, checked in one line:

>>> import numpy as np
>>> from structsolve import Block, Examples, WeightLayout, NodeSpace, Structure
>>> from structsolve.examples import labels, packing
>>> from structsolve.testing import check_structure
>>> class Steps(Structure):
...     '''Label sequences that never go down.'''
...     name = "steps"
...     def make_space(self, X, Y, classes=None, fit_intercept=True):
...         nodes, offsets = packing.stack_rows(X)
...         flat = labels.flatten(Y, offsets)
...         classes = labels.learn_classes(flat, classes)
...         space = StepsSpace(self, classes, nodes.shape[1], fit_intercept)
...         return space, Examples(offsets, nodes, space.encode(flat, offsets))
...     def space_from_state(self, state, arrays):
...         return StepsSpace(self, arrays["classes"], **state)
...     def sample(self, random_state, n=4, size=3):
...         rng = np.random.default_rng(random_state)
...         lengths = rng.integers(1, size + 1, n)
...         X = [rng.integers(-2, 3, (length, 2)).astype(float) for length in lengths]
...         return X, [np.sort(rng.integers(0, 3, length)) for length in lengths]
>>> class StepsSpace(NodeSpace):
...     def __init__(self, structure, classes, n_features, intercept):
...         block = Block("node", "node", (len(classes),), ("class",))
...         super().__init__(structure, WeightLayout([block], n_features, 0, intercept), classes)
...     def stack(self, X):
...         nodes, offsets = packing.stack_rows(X, self.layout.n_features)
...         return Examples(offsets, nodes)
...     def contains(self, label, examples, i):
...         return bool((np.diff(label) >= 0).all())
...     def parts(self, examples, i, label):
...         return {"node": np.eye(len(self.classes_))[label]}
...     def argmax(self, examples, i, theta):
...         best = [theta["node"][0]]       # of the prefixes that end in each class
...         for row in theta["node"][1:]:
...             best.append(np.maximum.accumulate(best[-1]) + row)
...         label = [int(best[-1].argmax())]
...         for row in best[-2::-1]:
...             label.append(int(row[: label[-1] + 1].argmax()))
...         return label[::-1]
>>> check_structure(Steps())
"""

from __future__ import annotations

from ._backends import check_backend
from ._hosts import check_metric, check_reader
from ._promise import BrokenPromise
from ._searches import check_search
from ._sizes import SlowOperator
from ._solvers import check_loss, check_solver
from ._structure import check_structure
from ._surrogates import check_surrogate

__all__ = [
    "BrokenPromise",
    "SlowOperator",
    "check_backend",
    "check_loss",
    "check_metric",
    "check_reader",
    "check_search",
    "check_solver",
    "check_structure",
    "check_surrogate",
]
