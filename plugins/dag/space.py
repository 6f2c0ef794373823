"""Label sets under a hierarchy: the structure that users declare, and its space on given data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.labels import first_difference
from structsolve.examples.packed import Examples
from structsolve.plugins.dag._oracle import FoldedSets
from structsolve.plugins.dag._shape import HierarchyShape
from structsolve.plugins.dag.hierarchy import Hierarchy, as_hierarchy, as_mapping
from structsolve.plugins.dag.labels import column_of, encode_leaves, encode_sets
from structsolve.plugins.dag.levels import Levels, is_table
from structsolve.plugins.dag.union_program import UnionProgram
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.utils.params import check_choice, parameters

LABELS = ("closed", "leaf-union", "single-leaf")


@parameters
class DagStructure(Structure):
    """Sets of labels that contain every ancestor, in a hierarchy, of their labels.

    The score of a set is the sum of ``w_v . x`` over its nodes.

    Parameters
    ----------
    hierarchy : networkx.DiGraph, mapping or array of shape (m, 2), optional
        Edges from parents to children: a graph, ``{node: list of children}``, or pairs (parent,
        child). There may be several roots.  See :class:`Hierarchy` for the order of the nodes.
        Without one, it is learned from a table of levels.
    labels : {"closed", "leaf-union", "single-leaf"}, default="closed"
        The family of sets. "closed": all sets that contain the parents of their nodes, including
        the empty set. "leaf-union": closed sets with a leaf in which every inner node has a child,
        that is, unions of paths from roots to leaves.  "single-leaf": one leaf and its ancestors,
        classification with shared weights.
    roots : {"free", "on"}, default="free"
        "on": every set holds all roots.  For "closed" only.
    close : bool, default=False
        Add missing ancestors to the labels of y; False refuses such labels.

    Notes
    -----
    X is a plain 2-D array, CSR matrix or data frame.  Y is a matrix of 0 and 1 with one column per
    node, or a list with such a row, or a list of labels, for each row of X (for "single-leaf" also
    a 1-D array of leaves; rows of 0 and 1 are arrays where nodes are called 0 and 1).  Predictions
    are such a matrix, for "single-leaf" an array of leaves.

    For "single-leaf", Y may also be a table of levels: a data frame or a 2-D array of names, or
    lists of names, a path from a root a row.  Predictions are a table, too.  Shorter paths end in
    "", None or NaN.  Learned from such a table, the hierarchy is that of its paths: an inner node
    at which paths end is a class of its own, a leaf ``"NAME (itself)"``, and equal names below two
    parents are two nodes.

    Dynamic programming gives the best set where no node has two parents, else a maximum closure (a
    minimum cut).  On graphs "leaf-union" is hard: training solves the linear relaxation,
    prediction an integer program, by HiGHS.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.dag import DagStructure
    >>> animals = nx.DiGraph([("animal", "dog"), ("animal", "cat"), ("pet", "dog")])
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> model = StructuredSVM(DagStructure(animals, close=True), alpha=0.01)
    >>> model.fit(X, [["dog"], ["cat"], []]).classes_.tolist()
    ['animal', 'dog', 'cat', 'pet']
    >>> model.predict(X).tolist()
    [[1, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0]]
    """

    name = "dag"
    file_params = ("hierarchy",)

    hierarchy: Any = None
    labels: str = "closed"
    roots: str = "free"
    close: bool = False

    @property
    def single_node(self) -> bool:  # type: ignore[override]
        """Whether this is classification: one leaf per row of X."""
        return self.labels == "single-leaf" or self.hierarchy is None

    @property
    def label_sets(self) -> bool:  # type: ignore[override]
        """Whether labels are rows of an indicator matrix."""
        return not self.single_node

    def set_scores(self, y_true: Any, y_pred: Any) -> dict[str, Any]:
        """Return :func:`~structsolve.plugins.dag.hierarchical_scores` of label sets.

        Parameters
        ----------
        y_true, y_pred : array of shape (n_examples, n_nodes)
            0 and 1.

        Returns
        -------
        dict
        """
        return as_hierarchy(self.hierarchy).scores(y_true, y_pred)

    def saved_params(self) -> dict[str, Any]:
        """Return the parameters in forms that model files hold.

        Returns
        -------
        dict
        """
        return {**self.get_params(deep=False), "hierarchy": as_mapping(self.hierarchy)}

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_choice("labels", self.labels, LABELS)
        if self.hierarchy is None and self.labels == "leaf-union":
            raise ValueError(
                "labels is 'leaf-union', but without a hierarchy, which is learned from a table of "
                "levels, labels are single paths; give hierarchy, or use labels='single-leaf'"
            )
        check_choice("roots", self.roots, ("free", "on"))
        if self.roots == "on" and self.labels != "closed":
            raise ValueError(
                f"roots is 'on', but labels is {self.labels!r}, where leaves determine which roots "
                "are on; use roots='free', or labels='closed'"
            )
        if not isinstance(self.close, (bool, np.bool_)):
            raise ValueError(f"close is {self.close!r}, expected True or False")

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[DagSpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`. ``classes``, if given, have to be those of the
        hierarchy.
        """
        self.check_params()
        nodes, offsets = packing.single_rows(X, compress=True)
        n = nodes.shape[0]
        structure, hierarchy = self, self.hierarchy
        levels: Levels | None = None
        if is_table(Y, hierarchy is None) and self.single_node:
            if hierarchy is None:
                levels = Levels.learn(Y, n)
                structure = DagStructure(levels.hierarchy, "single-leaf")
            else:
                levels = Levels.under(Hierarchy(hierarchy), Y, n)
            hierarchy = levels.hierarchy
        space = DagSpace(structure, Hierarchy(hierarchy), nodes.shape[1], fit_intercept, levels)
        space.check_classes(classes)
        return space, space._examples(nodes, offsets, space.encode(Y, n))

    def score_space(self, classes: Any = None, edge: bool = False) -> DagSpace:
        """Return a space of the hierarchy without features: one score per node of it."""
        self.check_params()
        packing.no_edges(edge, self.name)
        space = DagSpace(self, Hierarchy(self.hierarchy), 0, False)
        space.check_classes(classes)
        return space

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> DagSpace:
        """Rebuild a space from what its ``state()`` returned."""
        hierarchy, told = Hierarchy(self.hierarchy), state.get("levels")
        levels = None if told is None else Levels.from_state(told, hierarchy)
        return DagSpace(self, hierarchy, state["n_features"], state["intercept"], levels)

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return n small random examples that fit the parameters."""
        self.check_params()
        rng = np.random.default_rng(random_state)
        X = rng.integers(-2, 3, (n, 3)).astype(float)
        hierarchy = Hierarchy(self.hierarchy)
        if self.labels == "single-leaf":
            return X, hierarchy.nodes[rng.choice(hierarchy.leaves, n)]
        Y = np.zeros((n, len(hierarchy)), dtype=np.int32)
        some = hierarchy.leaves if self.labels == "leaf-union" else np.arange(len(hierarchy))
        for row in Y:
            row[rng.choice(some, rng.integers(self.labels != "closed", min(3, len(some)) + 1))] = 1
        if self.roots == "on":
            Y[:, hierarchy.roots] = 1
        return X, hierarchy.close(Y).astype(np.int64)


class DagSpace(Space):
    """A hierarchy and the number of features.

    Attributes
    ----------
    hierarchy : Hierarchy
    classes_ : ndarray
        Names of the nodes, in the order of Y's columns; for "single-leaf" the sorted leaves.
    leaf_columns : ndarray of int32
        Columns of the leaves, in the order of their sorted names.
    levels : Levels or None
        The paths of the nodes, if labels are tables of levels.
    """

    def __init__(
        self,
        structure: DagStructure,
        hierarchy: Hierarchy,
        n_features: int,
        intercept: bool,
        levels: Levels | None = None,
    ):
        axis = "node" if structure.labels == "single-leaf" else "class"
        block = Block("node", "node", (len(hierarchy),), (axis,))
        super().__init__(structure, WeightLayout([block], n_features, 0, intercept))
        self.hierarchy, self.levels = hierarchy, levels
        self.axis_names = {"node": hierarchy.nodes}
        names = hierarchy.nodes[hierarchy.leaves]
        self.leaf_columns = hierarchy.leaves[np.argsort(names, kind="stable")]
        self.single = structure.labels == "single-leaf"
        self.classes_ = hierarchy.nodes[self.leaf_columns] if self.single else hierarchy.nodes

    @property
    def no_powers(self) -> dict[str, str]:
        """Reasons for missing powers, by name, for messages."""
        if not self.unions_are_hard:
            return {}
        why = (
            "the best union of paths in a graph with several parents is an integer program, and "
            "each further answer would take one per label"
        )
        return {"kbest": why, "max-marginals": why}

    @property
    def no_projection(self) -> dict[str, str]:
        """Reasons for missing projections, by their names."""
        if self.single or self.hierarchy.forest:
            return {}
        return {
            "entropy": "to sum over the label sets of a hierarchy in which nodes have several "
            "parents takes exponential time, as to count them is #P-hard"
        }

    @property
    def label_columns(self) -> list[str] | None:
        """Names of the columns of y that are no classes, but levels; the shell compares them."""
        return None if self.levels is None else self.levels.form["columns"] or []

    def learned(self, X: Any, examples: Examples) -> Levels | None:
        """Return what the space has from these data.

        Parameters
        ----------
        X : list
        examples : Examples

        Returns
        -------
        Levels or None
        """
        return self.levels

    def joined(self, learned: list[Any], classes: Any = None) -> DagSpace:
        """Return the space of shards of data.

        Parameters
        ----------
        learned : list
            Of each shard.
        classes : ndarray, optional
            Of all shards, if these are not those of this space.

        Returns
        -------
        Space
        """
        nodes = self.hierarchy.nodes.tolist()
        if self.levels is None or all(own.hierarchy.nodes.tolist() == nodes for own in learned):
            return self
        levels = Levels.joined(learned)
        structure = DagStructure(levels.hierarchy, "single-leaf")
        sizes = self.layout.n_features, self.layout.intercept
        return DagSpace(structure, levels.hierarchy, *sizes, levels)

    def encode(self, Y: Any, n: int, unseen: str = "error") -> np.ndarray:
        """Return the checked and encoded labels of n examples, one after the other.

        Parameters
        ----------
        Y : list or array
            As users give it.
        n : int
            Rows of X.
        unseen : {"error", "extra"}
            "extra": paths of a table that are unknown are wrong for any prediction.

        Returns
        -------
        ndarray of int32

        Raises
        ------
        ValueError
            The message names the example and the label.
        """
        structure, hierarchy = self.structure, self.hierarchy
        if self.levels is not None and is_table(Y, True):
            return self.levels.encode(Y, n, unseen)
        if self.single:
            return encode_leaves(Y, n, hierarchy, structure.close)
        union = structure.labels == "leaf-union"
        matrix = encode_sets(Y, n, hierarchy, structure.close, union)
        if structure.roots == "on" and structure.close:
            matrix[:, hierarchy.roots] = 1
        self._check_roots(matrix)
        return matrix.ravel()

    def _check_roots(self, matrix: np.ndarray) -> None:
        """Refuse sets that lack roots, if all roots must be on."""
        roots = self.hierarchy.roots
        off = matrix[:, roots] == 0
        if self.structure.roots == "on" and off.any():
            i, r = np.argwhere(off)[0].tolist()
            raise ValueError(
                f"example {i}: found labels without the root "
                f"{self.hierarchy.nodes[roots[r]].item()!r}, expected all roots as roots is 'on'; "
                "use roots='free', or close=True to add them"
            )

    def check_classes(self, classes: Any) -> None:
        """Refuse classes that are not those of the hierarchy.

        Parameters
        ----------
        classes : sequence, or None

        Raises
        ------
        ValueError
        """
        if classes is None or np.array_equal(classes, self.classes_):
            return
        if np.ndim(classes) != 1 or isinstance(classes, str):
            wrong = f"found {classes!r}"
        else:
            wrong = first_difference(list(classes), self.classes_.tolist())
        raise ValueError(f"classes: expected those of the hierarchy in its order; {wrong}")

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse sets that lack ancestors of their labels, or are not of this kind."""
        hierarchy = self.hierarchy
        if self.single:
            leaf = np.zeros(len(hierarchy), dtype=bool)
            leaf[hierarchy.leaves] = True
            if not leaf[flat].all():
                encode_leaves(hierarchy.nodes[flat], examples.n, hierarchy, False)
            return
        sets = flat.reshape(examples.n, len(hierarchy))
        edges, structure = hierarchy.edges, self.structure
        fits = bool((sets[:, edges[:, 1]] <= sets[:, edges[:, 0]]).all())
        if not fits or structure.roots == "on" or structure.labels == "leaf-union":
            union = structure.labels == "leaf-union"
            self._check_roots(encode_sets(sets, examples.n, hierarchy, False, union))

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return this many examples without features."""
        return self._examples(None, packing.row_offsets(sizes, topology), None)

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check X and Y and pack them; see :meth:`structsolve.Space.pack`."""
        nodes, offsets = packing.single_rows(X, self.layout.n_features, compress=True)
        labels = None if Y is None else self.encode(Y, nodes.shape[0], unseen)
        examples = self._examples(nodes, offsets, labels)
        return examples

    def _examples(self, nodes: Any, offsets: np.ndarray, labels: np.ndarray | None) -> Examples:
        """Put checked rows and encoded labels together."""
        size = 1 if self.single else len(self.hierarchy)
        return Examples(offsets, nodes, labels, size * offsets)

    def unpack(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return encoded labels in the form users give Y."""
        if self.levels is not None:
            return self.levels.decode(flat)
        if self.single:
            return self.hierarchy.nodes[flat]
        return flat.reshape(examples.n, len(self.hierarchy)).astype(np.int64)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return one encoded label in the form users give it."""
        if self.levels is not None:
            return self.levels.table[label[0]].copy()
        return self.hierarchy.nodes[label[0]] if self.single else label.astype(np.int64)

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return scores or marginals of the rows in a form like that of Y."""
        return flat[:, self.leaf_columns] if self.single else flat

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        state: dict[str, Any] = {
            "n_features": self.layout.n_features,
            "intercept": self.layout.intercept,
        }
        if self.levels is not None:
            state["levels"] = self.levels.state()
        return state, {}

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every label of a small example."""
        h, M = self.hierarchy, len(self.hierarchy)
        if self.single:
            return h.leaves[:, None].copy()
        rows = np.ascontiguousarray(np.indices((2,) * M, dtype=np.int32).reshape(M, -1).T)
        keep = (rows[:, h.edges[:, 1]] <= rows[:, h.edges[:, 0]]).all(axis=1)
        if self.structure.roots == "on":
            keep &= rows[:, h.roots].all(axis=1)
        if self.structure.labels == "leaf-union":
            keep &= rows[:, h.leaves].any(axis=1)
            for v in np.setdiff1d(np.arange(M), h.leaves):
                keep &= rows[:, v] <= rows[:, h.children(v)].max(axis=1)
        return rows[keep]

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return the mask of labels that may not be on; see :meth:`structsolve.Space.mask`.

        ``allowed``: per row the labels that may be on, or None for all. ``forbidden``: closed sets
        have no transitions to forbid.
        """
        if forbidden is not None:
            raise ValueError("forbidden transitions: a hierarchy has none; use allowed")
        if allowed is None:
            return {}
        if len(allowed) != examples.n:
            raise ValueError(f"allowed has {len(allowed)} entries, expected {examples.n}")
        mask = np.zeros((examples.n, len(self.hierarchy)))
        for i, names in enumerate(allowed):
            if names is None:
                continue
            if isinstance(names, (str, bytes, dict)) or not hasattr(names, "__iter__"):
                raise ValueError(f"example {i}: allowed is {names!r}, expected a list of labels")
            # A single leaf includes its ancestors: only leaves can be forbidden.
            mask[i, self.hierarchy.leaves if self.single else slice(None)] = -np.inf
            mask[i, [column_of(name, i, self.hierarchy) for name in names]] = 0
        return {"node": mask}

    # -- operators ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # Native objects are not pickled: they are rebuilt when needed.
        return {
            k: v for k, v in self.__dict__.items() if k not in ("shape", "sets", "union_program")
        }

    @cached_property
    def shape(self) -> Any:
        """The native description of the hierarchy."""
        return HierarchyShape(
            self.hierarchy,
            self.layout.node_size,
            self.single,
            self.structure.labels == "leaf-union",
            self.structure.roots == "on",
        )

    @cached_property
    def sets(self) -> Any:
        """Closed sets as the oracle folds them."""
        return FoldedSets(self.shape)

    @cached_property
    def union_program(self) -> Any:
        """The integer program of unions of paths."""
        return UnionProgram(self.hierarchy)

    @property
    def unions_are_hard(self) -> bool:
        """Whether labels are unions of paths without a fast oracle."""
        return self.structure.labels == "leaf-union" and not self.hierarchy.forest
