"""Hierarchical precision, recall and F1, of arrays and as scorers by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.evaluation.report import Report, of_argument
from structsolve.evaluation.scorers import Weighted, final_model
from structsolve.evaluation.tokens import check_kinds
from structsolve.examples.given import check_columns
from structsolve.plugins.dag.hierarchy import as_hierarchy, report_of_counts
from structsolve.plugins.dag.levels import prefix_numbers, read_paths
from structsolve.structure.pack import pack


def hierarchical_scores(
    y_true: Any, y_pred: Any, hierarchy: Any = None, sample_weight: Any = None
) -> Report:
    """
    Compute hierarchical precision, recall and F1 (Kiritchenko, Matwin and Famili, 2005).

    Both sets get all ancestors of their labels; precision is the share of predicted labels that are
    true, recall the share of true labels that are predicted, both over all examples together, or
    ("macro") as means over examples.  A single root is an ancestor of all labels and does not
    count.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_examples, n_nodes), or tables of levels
        0 and 1, in the order of the hierarchy's nodes; without a hierarchy, data frames, 2-D arrays
        or lists of names, a path from a root a row.
    hierarchy : Hierarchy or networkx DiGraph, optional
        Edges go from parent to child.
    sample_weight : array of shape (n_examples,), optional

    Returns
    -------
    Report
        A dict that prints as a table: ``precision``, ``recall``, ``f1`` and ``support``, the number
        of true labels; ``micro``, the same; ``macro``, the means of the figures of each example (0
        for 0 / 0).

    Raises
    ------
    ValueError
        If there is not one column per node, and for tables that are none.

    Notes
    -----
    Of tables they are the numbers of HiClass, where each name has one parent: it takes a name
    below two parents as one label.

    Examples
    --------
    A dog predicted as a cat still counts as an animal:

    >>> import networkx as nx
    >>> from structsolve.plugins.dag import hierarchical_scores
    >>> animals = nx.DiGraph([("animal", "dog"), ("animal", "cat"), ("thing", "chair")])
    >>> hierarchical_scores([[0, 1, 0, 0, 0]], [[0, 0, 1, 0, 0]], animals)["f1"]
    0.5
    >>> hierarchical_scores([["animal", "dog"]], [["animal", "cat"]])["f1"]
    0.5
    """
    check_columns(y_pred, getattr(y_true, "columns", None), what="y_pred", whose="y_true has")
    if hierarchy is None:
        paths, n = [], None
        for name, Y in (("y_true", y_true), ("y_pred", y_pred)):
            with of_argument(name):
                n = len(Y) if n is None else n
                paths.append(read_paths(Y, n, name))
        if paths[0] and paths[1]:
            check_kinds(paths[0][0][0], paths[1][0][0])
        true, pred = prefix_numbers(*paths)
        counts = ((true == pred) & (true >= 0)).sum(axis=1), (pred >= 0).sum(axis=1)
        return report_of_counts(*counts, (true >= 0).sum(axis=1), sample_weight)
    return as_hierarchy(hierarchy).scores(y_true, y_pred, sample_weight)


@dataclass(frozen=True)
class HierarchicalScorer(Weighted):
    """``scorer(estimator, X, y) -> float`` of :func:`hierarchical_scores`, greater is better.

    Parameters
    ----------
    figure : {"f1", "precision", "recall"}
    average : {"micro", "macro"}
    """

    figure: str
    average: str = "micro"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions.

        Parameters
        ----------
        estimator : estimator
            Fitted; maybe in a pipeline or a search.
        X, y : as for its ``fit``
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If labels have no hierarchy.
        """
        model, X = final_model(estimator, X)
        space: Any = getattr(model, "space_", None)
        if getattr(space, "hierarchy", None) is None:
            structure = getattr(space, "structure", None)
            raise ValueError(
                f"metric 'hierarchical-{'macro-' * (self.average == 'macro')}{self.figure}' needs "
                f"a hierarchy; structure {getattr(structure, 'name', None)!r} has none"
            )
        if getattr(space, "levels", None) is not None:
            scores = hierarchical_scores(y, model.predict(X), None, sample_weight)
            return float(scores[self.average][self.figure])
        given = (pack(space, X, labels) for labels in (y, model.predict(X)))
        true, pred = (_indicators(space, examples) for examples in given)
        scores = hierarchical_scores(true, pred, space.hierarchy, sample_weight)
        return float(scores[self.average][self.figure])


def _indicators(space: Any, examples: Any) -> np.ndarray:
    """Return packed labels as indicators of all nodes; single leaves without their ancestors."""
    if not space.single:
        return np.asarray(examples.labels).reshape(examples.n, -1)
    matrix = np.zeros((examples.n, len(space.hierarchy)), dtype=np.int32)
    matrix[np.arange(examples.n), examples.labels] = 1
    return matrix
