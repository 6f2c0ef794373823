"""Label sets: any number of L labels for every row of features, with scores of pairs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.given import check_columns, check_weights, column_names
from structsolve.examples.labels import class_names
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.decoders import check_name
from structsolve.plugins.mrf.graph_operators import NO_POWERS, common_graphs
from structsolve.plugins.multilabel.labels import (
    MOST_FULL,
    counts_of,
    indicators,
    label_groups,
    label_pairs,
    learned_pairs,
)
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.structure.losses import ClassWeights


class MultilabelStructure(Structure):
    """A set of labels for every row of X, with weights for pairs of labels.

    The score of a set is the sum of ``w_l . x`` over its labels and, for each pair of labels with
    an edge, one weight per joint state (both off, one on, both on).

    Parameters
    ----------
    edges : {"auto", "full", "tree", "none"} or array of shape (m, 2), default="auto"
        Pairs of labels with weights. "full": all; "tree": the tree of largest mutual
        information between the training labels (Chow and Liu); "none": labels are decided
        separately; or an array of pairs, as column numbers (or names, if y is a data frame).
        "auto": "full" up to 8 labels; "none" for more than 1000; between, the pairs whose labels
        occur together more or less often than by chance, within a budget that the log reports (2
        pairs per label, 500,000 divided by the number of rows). ``space_.edges_`` has the pairs.
        Rows count by their weights in ``StructuredSVM``, except with a kernel.
    oracle : str, default="auto"
        The search for the best set. "exact": always the best (trees by dynamic programming, others
        by enumeration of all sets). "mincut": the best by one minimum cut, if weights of pairs
        are super-modular. "roof-duality": the linear relaxation by one maximum flow,
        rounded, with a bound of its error. "auto": "exact" where that is cheap, else
        "roof-duality".
    predict_oracle : str, optional
        The oracle for prediction; by default ``oracle``.

    Notes
    -----
    X is a plain 2-D array, CSR matrix or data frame.  Y is an indicator matrix of shape (n, L): an
    array, sparse matrix or data frame of 0 and 1, bool too.  Predictions are an array of int of
    that shape.  ``decision_function`` has that shape too: the best score with a label on, less
    the best with it off; if the oracle is not exact, with the other labels as predicted.
    With ``loss="auto"`` and the surrogate "margin", a missed label costs 2 in training and an extra
    one 1: ``ClassWeights({1: 2.0})``, class 1 being a label that is on.  That aims at micro-F1; for
    fewest wrong labels take ``loss="hamming"``, for other costs ClassWeights or a CostMatrix.
    ``predict(X, allowed=[...])`` takes for each row the labels that may be on, or a dict of label
    to True or False for the fixed labels.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    >>> Y = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0]])
    >>> model = StructuredSVM("multilabel", alpha=0.01).fit(X, Y)
    >>> model.predict(X).tolist()
    [[1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0]]
    >>> model.predict(X[:1], allowed=[{1: True}]).tolist()
    [[1, 1, 1]]
    """

    name = "multilabel"
    layouts = {"edges": ("auto", "full", "tree", "none")}
    label_sets = True

    def __init__(self, edges: Any = "auto", oracle: str = "auto", predict_oracle: Any = None):
        self.edges = edges
        self.oracle = oracle
        self.predict_oracle = predict_oracle

    def make_space(
        self,
        X: Any,
        Y: Any,
        classes: Any = None,
        fit_intercept: bool = True,
        sample_weight: Any = None,
    ) -> tuple[MultilabelSpace, Examples]:
        """Learn labels and their pairs, and pack the training data.

        See :meth:`structsolve.Structure.make_space`. ``X``: array, CSR matrix or data frame of
        shape (n, n_features). ``Y``: array, sparse matrix or data frame of shape (n, L).
        ``classes``: names of the columns of Y. ``sample_weight``: weights of the rows in counts of
        pairs.

        Raises
        ------
        ValueError
            For entries of Y that are neither 0 nor 1, and unknown oracles and pairs.
        """
        self.check_params()
        nodes, offsets = packing.single_rows(X, compress=True)
        matrix = indicators(Y, nodes.shape[0])
        names = column_names(Y, matrix.shape[1], classes)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(matrix))
        edges = label_pairs(self.edges, matrix, names, sample_weight)
        space = MultilabelSpace(self, names, edges, nodes.shape[1], fit_intercept)
        return space, space._examples(nodes, offsets, matrix)

    def score_space(self, classes: Any = None, edge: bool = False) -> MultilabelSpace:
        """Return a space without features, of a number of labels or of their names.

        See :meth:`structsolve.Structure.score_space`.

        Parameters
        ----------
        classes : int or sequence
        edge : bool
            Must be False: pairs of labels have shared scores.

        Raises
        ------
        ValueError
            If ``edges`` is "tree", or "auto" for more than 50 labels (else it is "full"): these are
            learned from training labels.
        """
        self.check_params()
        packing.no_edges(edge, self.name)
        names = class_names(classes, self.name, ordered=False)
        edges = self.edges
        if isinstance(edges, str) and edges == "auto" and len(names) <= MOST_FULL:
            edges = "full"
        if isinstance(edges, str) and edges in ("auto", "tree"):
            raise ValueError(
                f"edges is {self.edges!r}, for {len(names)} labels pairs chosen by training "
                "labels, and there are none; give the pairs, or edges='full' or 'none'"
            )
        edges = label_pairs(edges, np.zeros((1, len(names)), np.int32), names)
        return MultilabelSpace(self, names, edges, 0, False)

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_name(self.oracle)
        if self.predict_oracle is not None:
            check_name(self.predict_oracle, "predict_oracle")

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> MultilabelSpace:
        """Rebuild a space from what its ``state()`` returned."""
        return MultilabelSpace(
            self, arrays["classes"], arrays["edges"], state["n_features"], state["intercept"]
        )

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return random rows of features and label sets."""
        rng = np.random.default_rng(random_state)
        X = rng.integers(-2, 3, (n, 3)).astype(float)
        if not isinstance(self.edges, str):  # the labels that its pairs name must be there
            size = max(size, int(np.max(self.edges, initial=-1)) + 1)
        return X, rng.integers(0, 2, (n, size))


class MultilabelSpace(Space):
    """Labels, their pairs and the number of features.

    Attributes
    ----------
    classes_ : ndarray of shape (L,)
        Names of the labels, in the order of Y's columns.
    edges_ : ndarray of int32 of shape (m, 2)
        Pairs of labels that have weights.
    """

    # Costs (2 - F) / F and 1 of missed and of extra labels aim at a micro-F1 of F (Parambath,
    # Usunier, Grandvalet 2014); F = 2/3 did well on held-out training rows of ten sets.
    margin_loss = ClassWeights({1: 2.0})
    # The gain of each label always exists.
    no_powers = {"kbest": NO_POWERS["kbest"]}

    def __init__(
        self,
        structure: MultilabelStructure,
        classes: np.ndarray,
        edges: np.ndarray,
        n_features: int,
        intercept: bool,
    ):
        blocks = [Block("node", "node", (len(classes),), ("class",))]
        if len(edges):
            blocks.insert(
                0, Block("pair", "shared", (len(edges), 2, 2), ("edge", "state", "state"))
            )
        super().__init__(structure, WeightLayout(blocks, n_features, 0, intercept))
        self.classes_, self.edges_ = classes, edges
        self.separate_parts = not len(edges)

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Return packed rows; labels are indicators, L per row; see :meth:`structsolve.Space.pack`.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, n_features)
        Y : array, sparse matrix or data frame of shape (n, L), optional
            0 and 1.
        unseen : {"error", "extra"}
            Ignored: an indicator matrix has no other labels.

        Raises
        ------
        ValueError
            For columns that differ from training, and entries that are neither 0 nor 1.
        """
        nodes, offsets = packing.single_rows(X, self.layout.n_features, compress=True)
        matrix = None
        if Y is not None:
            check_columns(Y, self.classes_, self.classes_.dtype.kind not in "US")
            matrix = indicators(Y, nodes.shape[0], len(self.classes_))
        examples = self._examples(nodes, offsets, matrix)
        return examples

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return this many examples without features."""
        return self._examples(None, packing.row_offsets(sizes, topology), None)

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return the mask of labels that must be off (-inf) or on (inf).

        See :meth:`structsolve.Space.mask`. ``allowed``: per row the labels that may be on, or a
        dict of label to True (on) or False (off) for fixed labels; None allows all.
        ``forbidden``: label sets have no transitions to forbid.

        Raises
        ------
        ValueError
            If the number of rows differs, or a label is unknown; the message then names its row.
        """
        if forbidden is not None:
            raise ValueError("forbidden transitions: label sets have none; use allowed")
        if allowed is None:
            return {}
        if len(allowed) != examples.n:
            raise ValueError(f"allowed has {len(allowed)} entries, expected {examples.n}")
        column = {name: k for k, name in enumerate(self.classes_.tolist())}
        mask = np.zeros((examples.n, len(column)))
        for i, names in enumerate(allowed):
            if names is None:
                continue
            decided = isinstance(names, dict)
            if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
                raise ValueError(
                    f"example {i}: allowed is {names!r}, expected a list of labels, or a dict of "
                    "label to True or False"
                )
            names = list(names.items()) if decided else [(name, None) for name in names]
            for name, on in names:
                # True is no name of label 1: a row of True and False would allow other labels.
                mistaken = isinstance(name, (bool, np.bool_)) and self.classes_.dtype.kind != "b"
                if mistaken or not isinstance(name, Hashable) or name not in column:
                    raise ValueError(
                        f"example {i}: allowed names the label {name!r}; known are "
                        f"{self.classes_.tolist()[:12]}"
                    )
                if on not in (None, True, False):
                    raise ValueError(
                        f"example {i}: allowed has {on!r} for the label {name!r}, expected True or "
                        "False"
                    )
            if not decided:
                mask[i] = -np.inf
            for name, on in names:
                mask[i, column[name]] = 0 if on is None else np.inf if on else -np.inf
        return {"node": mask}

    def _examples(self, nodes: Any, offsets: np.ndarray, matrix: np.ndarray | None) -> Examples:
        """Put checked rows and indicators together."""
        examples = Examples(offsets, nodes, label_offsets=len(self.classes_) * offsets)
        if matrix is not None:
            examples.labels = matrix.ravel()
        # The pairs may depend on the training labels: a resumed run must have the same.
        examples.topology["identity"] = self.edges_.tobytes().hex()
        return examples

    def groups(self, examples: Examples, loss: Any) -> list[tuple[Any, Examples, np.ndarray]]:
        """Return the labels connected by pairs, and all those without a pair as one group."""
        sizes, of_label = label_groups(self.edges_, len(self.classes_))
        # Only a sum over the labels, not their mean, is a sum over groups.
        if getattr(loss, "normalized", loss != "hamming") or len(sizes) < 2:
            return []
        matrix = examples.labels.reshape(examples.n, -1)
        everywhere, made = np.arange(self.layout.dim), []
        for group in range(len(sizes)):
            labels = np.flatnonzero(of_label == group)
            pairs = np.flatnonzero(of_label[self.edges_[:, 0]] == group)
            edges = np.searchsorted(labels, self.edges_[pairs]).astype(np.int32)
            space = MultilabelSpace(
                self.structure,
                self.classes_[labels],
                edges,
                self.layout.n_features,
                self.layout.intercept,
            )
            places = np.full(space.layout.dim, -1)
            nodes = self.layout.view(everywhere, "node")[:, labels]
            space.layout.view(places, "node")[...] = nodes
            if len(pairs):
                tables = self.layout.view(everywhere, "pair")[pairs]
                space.layout.view(places, "pair")[...] = tables
            own = space._examples(None, examples.offsets, np.ascontiguousarray(matrix[:, labels]))
            own.nodes, own.sample_weight = examples.nodes, examples.sample_weight
            made.append((space, own, places))
        return made

    def unpack(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return label sets as an indicator matrix."""
        return flat.reshape(examples.n, len(self.classes_)).astype(np.int64)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> np.ndarray:
        """Return one label set as indicators."""
        return label.astype(np.int64)

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return scores or marginals of labels as they are."""
        return flat

    def learned(self, X: Any, examples: Examples) -> Any:
        """Return what the space has from these data, besides classes.

        Parameters
        ----------
        X : list
        examples : Examples

        Returns
        -------
        ndarray or None
        """
        L = len(self.classes_)
        if learned_pairs(self.structure.edges, L) is None:
            return None
        return counts_of(examples.labels.reshape(-1, L), examples.sample_weight)

    def joined(self, learned: list[Any], classes: Any = None) -> MultilabelSpace:
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
        choose = learned_pairs(self.structure.edges, len(self.classes_))
        if choose is None:
            return self
        state, arrays = self.state()
        arrays["edges"] = choose(np.sum(learned, axis=0))
        return self.structure.space_from_state(state, arrays)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        state, arrays = super().state()
        return state, {**arrays, "edges": self.edges_}

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return all sets of labels."""
        L = len(self.classes_)
        return np.ascontiguousarray(np.indices((2,) * L, dtype=np.int32).reshape(L, -1).T)

    def graphs(self, layout: Any) -> Any:
        """Return the native description of the graph of labels, made once per layout.

        Parameters
        ----------
        layout : PartLayout

        Returns
        -------
        GraphShape
        """
        return common_graphs(layout, self.edges_, 2, one_graph=True, skip=True)
