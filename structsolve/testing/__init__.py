"""The conformance kit: ``check_structure`` holds a structure to its promises, by brute force.

It is to plugin authors what ``check_estimator`` is to authors of scikit-learn estimators.  A whole
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
...     def state(self):
...         layout = self.layout
...         meta = {"n_features": layout.n_features, "intercept": layout.intercept}
...         return meta, {"classes": self.classes_}
...     def enumerate_labels(self, examples, i):
...         rows = super().enumerate_labels(examples, i)
...         return rows[(np.diff(rows, axis=1) >= 0).all(axis=1)]
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

from collections.abc import Sequence
from typing import Any

from .. import registry
from . import _declaration, _losses, _operators, _polytopes, _projections, _relaxed, _training
from ._case import BrokenPromise, Case

__all__ = ["BrokenPromise", "check_structure"]


def check_structure(
    structure: Any,
    loss: Any = "hamming",
    n_cases: int = 4,
    size: int = 3,
    random_state: int = 0,
    solvers: Sequence[Any] = ("bcfw", "cutting-plane", "sgd"),
) -> None:
    """Check a structure, and the operators that plugins give for it, against enumeration.

    Parameters
    ----------
    structure : str or Structure
        It has ``sample``, its spaces have ``enumerate_labels``.
    loss : str or loss object, default="hamming"
        Loss that the solvers train with; all losses that plugins name are checked one by one.
    n_cases : int, default=4
        Small data sets to draw from ``structure.sample``.
    size : int, default=3
        Bound on the size of a label, for ``sample``.
    random_state : int, default=0
    solvers : sequence of str or Solver
        Trained to the optimum, which must be the same for all that reach one; empty for none.

    Raises
    ------
    BrokenPromise
        An AssertionError that names the operator or method, the promise, the example, what was
        found and what was expected.

    Notes
    -----
    Checked are the declaration (parameters, ``clone``, packing, ``state``), the oracle (optimal
    at random, tied and zero scores where it calls itself exact, its value, its bound, ties, scratch
    memory, threads), its relaxation, its answers within a cone of the label plane, the polytope,
    k-best, max-marginals, the best label for each count, the loss-augmented oracle, parts, losses
    and their matrices, projections (marginals, bounds, states, G and its slope, samples), hard
    constraints on nodes, and that solvers agree.  Powers that a structure does not have are not
    checked.

    Examples
    --------
    >>> from structsolve.testing import check_structure
    >>> check_structure("chain", n_cases=1)
    """
    structure = registry.get_structure(structure)
    _declaration.check_parameters(structure)
    for number in range(n_cases):
        case = Case(structure, number, random_state + number, size)
        _declaration.check_packing(case)
        _declaration.check_state(case)
        case.enumerate()
        _operators.check_parts(case)
        _operators.check_oracle(case)
        _relaxed.check_relaxation(case)
        _polytopes.check_polytope(case)
        _operators.check_kbest(case)
        _relaxed.check_constrained(case, loss)
        _operators.check_max_marginals(case)
        _operators.check_counts(case, loss)
        _operators.check_constraints(case)
        _losses.check_losses(case, loss)
        _operators.check_augmented_oracle(case, loss)
        _projections.check_projections(case)
        _operators.check_threads(case)
        if solvers and number == 0:
            _training.check_solvers(case, loss, solvers)
