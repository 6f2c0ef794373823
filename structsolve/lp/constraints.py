"""Linear constraints on labels: rows over named parts that every answer satisfies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..operators import Parts
from ..structure.calls import encode
from ..utils.arrays import real_array
from .polytope import Polytope, Polytopes


class LabelConstraint(NamedTuple):
    """``lower <= <coef, mu(y)> <= upper``, over named parts of the label.

    A list of these is the ``constraints`` of a backend, in training and in prediction, or a
    function ``(examples, i)`` that returns such a list for one example.

    Parameters
    ----------
    parts : dict of str to array
        Coefficients by block name, as in ``coef_``: ``"node"``, ``"transition"``.  Those of the
        node block have the shape of one row, which then counts at every node, or one row per node;
        those of edges too.
    lower, upper : float

    Examples
    --------
    At most one "B" in a sequence, and only after an "A":

    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.lp import Highs, LabelConstraint
    >>> X, y = [np.eye(3)[[0, 1, 2]], np.eye(3)[[0, 2]]], [["A", "B", "C"], ["A", "C"]]
    >>> one_b = LabelConstraint({"node": [0, 1, 0]}, upper=1)
    >>> before = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]])     # from B and C to B
    >>> only_after = LabelConstraint({"transition": before}, upper=0)
    >>> model = StructuredSVM("chain", alpha=0.01, oracle=Highs(constraints=[one_b, only_after]))
    >>> model.fit(X, y).predict([np.eye(3)[[0, 1, 1]]])[0].tolist().count("B")
    1
    """

    parts: Any
    lower: float = -np.inf
    upper: float = np.inf


class ConstrainedPolytopes(Polytopes):
    """Polytopes with the rows of constraints; vertices may then be fractional.

    Parameters
    ----------
    polytopes : Polytopes
    constraints : list of LabelConstraint, or callable
        See :class:`LabelConstraint`.
    space : Space
    examples : Examples

    Raises
    ------
    TypeError
        If ``constraints`` is neither.
    """

    exact = False

    def __init__(self, polytopes: Polytopes, constraints: Any, space: Any, examples: Any):
        if not callable(constraints) and not isinstance(constraints, (list, tuple)):
            raise TypeError(
                f"constraints is {constraints!r}, expected a list of LabelConstraint, or a "
                "function of the examples and the number of one"
            )
        self.polytopes, self.constraints = polytopes, constraints
        self.space, self.examples = space, examples
        self.note = f"constrained, so that vertices may be fractional; without: {polytopes.note}"

    def key(self, i: int) -> Hashable:
        """Return the key that examples with the same rows share."""
        return i if callable(self.constraints) else self.polytopes.key(i)

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example, constrained."""
        from scipy import sparse  # heavy

        polytope, rows = self.polytopes.build(i), self.rows(i)
        if not rows:
            return polytope
        added = np.array([polytope.scores(row) for row, _, _ in rows])
        return replace(
            polytope,
            A=sparse.vstack([polytope.A, sparse.csr_matrix(added)], format="csr"),
            low=np.append(polytope.low, [low for _, low, _ in rows]),
            high=np.append(polytope.high, [high for _, _, high in rows]),
        )

    def rows(self, i: int) -> list[tuple[np.ndarray, float, float]]:
        """Return the constraints of an example.

        Parameters
        ----------
        i : int

        Returns
        -------
        list of tuple (row, lower, upper)
            Rows of shape (theta_size,), in the layout of theta.

        Raises
        ------
        ValueError
            The message names the example and the constraint that does not fit the structure.
        TypeError
            If a function returns no list.
        """
        given = self.constraints
        if callable(given):
            given = given(self.examples, i)
            if not hasattr(given, "__iter__"):
                raise TypeError(
                    f"example {i}: the function constraints returned {given!r}, expected a list "
                    "of LabelConstraint"
                )
        layout, examples = self.space.layout, self.examples
        nodes = int(examples.offsets[i + 1] - examples.offsets[i])
        edges = 0
        if examples.edge_offsets is not None:
            edges = int(examples.edge_offsets[i + 1] - examples.edge_offsets[i])
        made, kinds = [], {block.name: block.kind for block in layout.blocks}
        for k, constraint in enumerate(given):
            parts, low, high = _checked(constraint, i, k)
            row = np.zeros(layout.theta_size(nodes, edges))
            views = layout.theta_views(row, nodes, edges)
            for name, coef in parts.items():
                if name not in views:
                    raise ValueError(
                        f"example {i}: constraint {k} names the parts {name!r}, expected some of "
                        f"{sorted(views)}"
                    )
                coef = real_array(coef, f"example {i}: constraint {k}, {name!r}")
                shapes = [views[name].shape]
                if kinds[name] != "shared":
                    shapes.append(views[name].shape[1:])
                if not np.isfinite(coef).all() or coef.shape not in shapes:
                    raise ValueError(
                        f"example {i}: constraint {k} has coefficients of shape {coef.shape} for "
                        f"{name!r}, expected finite numbers of shape "
                        f"{' or '.join(map(str, shapes))}"
                    )
                views[name][...] = coef
            made.append((row, low, high))
        return made

    def check_truths(self, parts: Parts, labels: np.ndarray) -> None:
        """Refuse true labels that break a constraint: training could not compare them with others.

        Parameters
        ----------
        parts : Parts
            Bound to the same examples.
        labels : ndarray of int32
            True labels, concatenated.

        Raises
        ------
        ValueError
            The message names the first such example.
        """
        ends = self.examples.label_offsets
        for i in range(self.examples.n):
            index, value = encode(parts, i, np.ascontiguousarray(labels[ends[i] : ends[i + 1]]))
            for k, (row, low, high) in enumerate(self.rows(i)):
                total = float(row[index] @ value)
                near = 1e-9 * float(np.abs(row[index]) @ np.abs(value))
                if not low - near <= total <= high + near:
                    raise ValueError(
                        f"example {i}: the true label breaks constraint {k}: found {total:g}, "
                        f"expected {low:g} to {high:g}; leave the example out, or constrain "
                        "prediction alone by set_params(oracle=...) after fit"
                    )


def _checked(constraint: Any, i: int, k: int) -> tuple[Any, float, float]:
    """Return parts, lower and upper of a constraint; files store it as a list."""
    try:
        parts, low, high = LabelConstraint(*constraint)
        low, high = float(low), float(high)
        names = list(parts.keys())
    except (TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"example {i}: constraint {k} is {constraint!r}, expected a LabelConstraint"
        ) from error
    if np.isnan([low, high]).any() or low > high or not names:
        raise ValueError(
            f"example {i}: constraint {k} on {names} asks for {low:g} to {high:g}, expected parts "
            "and lower <= upper"
        )
    return parts, low, high
