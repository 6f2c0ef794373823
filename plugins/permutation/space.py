"""Permutations: the structure, and the space of rankings of K labels for every row of X."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.given import check_columns, column_names
from structsolve.examples.labels import class_names
from structsolve.examples.packed import Examples
from structsolve.examples.shared_rows import SharedRows, Table
from structsolve.plugins.permutation.assignments import AssignmentSpace
from structsolve.plugins.permutation.degrees import (
    degrees,
    pair_table,
    rank_polynomials,
    smooth_ranks,
)
from structsolve.plugins.permutation.labels import holds_pairs, rankings, stack_pairs
from structsolve.plugins.permutation.matching import MatchingSpace
from structsolve.potentials import mixed
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Structure
from structsolve.utils.params import check_choice

KINDS = ("auto", "ranking", "matching")


class PermutationStructure(Structure):
    """Rankings of labels, or matchings of the points of two sets.

    Parameters
    ----------
    kind : {"auto", "ranking", "matching"}, default="auto"
        "ranking": the score of a label at a rank is linear in the features of the example, with
        weights ``coef_["node"][:, label, rank]``.  "matching": the score of a pair is linear in
        features of the pair, with the same weights ``coef_["pair"]`` for all.  "auto": a ranking
        if X is a matrix, a matching if X is a list of arrays (or one array) of pairs.
    weights : {"auto", "smooth", "matrix", "scores", "rank:R"}, default="auto"
        For rankings.  "matrix": each label has weights for every rank.  "smooth": these, and
        training penalises them the more the less smoothly they change with the rank, up to 256
        labels.  "scores": it has one score, ``<w_k, x>``, with a larger factor at a better rank, so
        that the best ranking sorts the scores.  "rank:R": the score of label k at rank r is
        ``sum_j f_j(r) <w_kj, x>`` with R polynomials of the rank, of degrees 1 to R; "scores" is
        "rank:1".
        ``coef_["pair"].reshape(-1, K, R)`` then holds the weights.  "auto": "scores" or "matrix"
        where it predicts left-out training rows clearly better (:meth:`RankingSpace.suited_to`),
        else "smooth"; always the latter with a kernel, and where data are not at hand at once.
        Kernels other than "linear", and conditional risks, take no polynomials.

    Notes
    -----
    Rankings: X is a plain 2-D array, CSR matrix or data frame; Y is an array or frame of shape
    (n, K), or a list of rows, in which ``Y[i, k]`` is the rank of label k, from 0, the best, up.
    An *order*, which lists the labels from the best to the worst, becomes a ranking by
    ``np.argsort(order, axis=1)``.

    Matchings: X is a list with one array of shape (rows, columns, n_features) per example, no more
    rows than columns; Y is a list with the column of each row, all distinct.  A pair whose features
    are all NaN is forbidden.  There is no intercept: it would be the same for every matching.

    Losses: "spearman" (the footrule, the sum of the distances of ranks; the default of rankings),
    "hamming" (rows with another column, labels at another rank; the default of matchings),
    "normalized-hamming", "zero-one", or a
    :class:`~structsolve.CostMatrix` of ranks (of columns) in place of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> ranks = np.array([[0, 1, 2], [2, 0, 1]])     # the second prefers label 1, then 2, then 0
    >>> StructuredSVM("permutation", alpha=0.01).fit(X, ranks).predict(X).tolist()
    [[0, 1, 2], [2, 0, 1]]
    >>> pairs = [np.array([[[0.1], [0.9], [0.5]], [[0.8], [0.7], [0.1]]])]
    >>> model = StructuredSVM("permutation", alpha=0.01).fit(pairs, [[1, 0]])
    >>> model.predict(pairs)[0].tolist(), model.coef_["pair"].shape
    ([1, 0], (1, 1))
    """

    name = "permutation"
    label_rows = True

    #: What :meth:`solve_instance` solves without training, for the shell.
    instances = ("assignment",)

    def __init__(self, kind: str = "auto", weights: str = "auto"):
        self.kind = kind
        self.weights = weights

    @property
    def alike_nodes(self) -> bool:  # type: ignore[override]
        """Whether all pairs of a label and a rank share features: with polynomials of the rank."""
        return bool(degrees(self.weights))

    @staticmethod
    def solve_instance(costs: Any, maximize: bool = False) -> tuple[Any, float, float]:
        """Find the best assignment of one matrix, for the shell.

        Parameters
        ----------
        costs : array of shape (rows, cols)
        maximize : bool, default=False

        Returns
        -------
        columns : ndarray of int of shape (rows,)
        value, bound : float
        """
        from structsolve.plugins.permutation.assign import assign  # not needed in training

        best = assign(np.asarray(costs, dtype=np.float64), maximize=maximize)
        return best.columns, float(best.value), float(best.bound)

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[RankingSpace | MatchingSpace, Examples]:
        """Learn sizes, and pack the training data; see :meth:`structsolve.Structure.make_space`.

        Parameters
        ----------
        X : matrix, or list of arrays of pairs
        Y : rankings of shape (n, K), or list of matchings
        classes : sequence, optional
            For rankings: names of the columns of Y.
        fit_intercept : bool
            Rows of a matrix get a constant feature.

        Returns
        -------
        space : RankingSpace or MatchingSpace

        Raises
        ------
        ValueError
            For labels that are not permutations, or use forbidden pairs.
        """
        self.check_params()
        kind = self.kind
        if kind == "auto":
            kind = "matching" if holds_pairs(X) else "ranking"
        if kind == "matching":
            if classes is not None:
                raise ValueError("classes: matchings have none")
            if degrees(self.weights) or self.weights == "smooth":
                raise ValueError(
                    f"weights is {self.weights!r}, expected 'matrix': the weights of a matching "
                    "belong to pairs, whatever their places"
                )
            pairs = stack_pairs(X)
            matching = MatchingSpace(self, pairs[0].shape[1])
            return matching, matching._examples(pairs, Y)
        nodes, offsets = packing.single_rows(X, compress=True)
        ranks = rankings(Y, nodes.shape[0])
        names = column_names(Y, ranks.shape[1], classes)
        space = RankingSpace(self, names, nodes.shape[1], fit_intercept, degrees(self.weights))
        return space, space._examples(nodes, offsets, ranks)

    def score_space(self, classes: Any = None, edge: bool = False) -> RankingSpace | MatchingSpace:
        """Return a space without features; see :meth:`structsolve.Structure.score_space`.

        Parameters
        ----------
        classes : int or sequence, optional
            For rankings: the number of labels, or their names; matchings have none.
        edge : bool
            Must be False.

        Returns
        -------
        RankingSpace or MatchingSpace
            The latter if ``kind`` is "auto" and there are no classes.
        """
        self.check_params()
        packing.no_edges(edge, self.name)
        if self.kind == "matching" or (self.kind == "auto" and classes is None):
            if classes is not None:
                raise ValueError("classes: matchings have none")
            return MatchingSpace(self, 0)
        return RankingSpace(self, class_names(classes, self.name, ordered=False), 0, False)

    def check_params(self) -> None:
        """Refuse parameters that do not fit."""
        check_choice("kind", self.kind, KINDS)
        degrees(self.weights)

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> RankingSpace | MatchingSpace:
        """Rebuild a space from what its ``state()`` returned."""
        if state["kind"] == "matching":
            return MatchingSpace(self, state["n_features"])
        return RankingSpace(
            self, arrays["classes"], state["n_features"], state["intercept"], degrees(self.weights)
        )

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random examples: matchings (some pairs forbidden), or rankings."""
        rng = np.random.default_rng(random_state)
        if self.kind != "matching":
            X = rng.integers(-2, 3, (n, 3)).astype(float)
            return X, np.array([rng.permutation(size) for _ in range(n)])
        pairs, Y = [], []
        for _ in range(n):
            rows = int(rng.integers(1, size + 1))
            cols = rows + int(rng.integers(0, 2))
            y = rng.permutation(cols)[:rows]
            x = rng.integers(-2, 3, (rows, cols, 2)).astype(float)
            barred = rng.random((rows, cols)) < 0.2
            barred[np.arange(rows), y] = False
            x[barred] = np.nan
            pairs.append(x)
            Y.append(y)
        return pairs, Y


class RankingSpace(AssignmentSpace):
    """K labels and the number of features: ``theta[k, r]`` scores label k at rank r.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Names of the labels, in the order of Y's columns.
    """

    #: Ranks are numbers: a loss by their distances trains better rankings than one of equal ranks.
    default_loss = "spearman"
    checks_alpha = True

    def __init__(
        self,
        structure: PermutationStructure,
        classes: np.ndarray,
        n_features: int,
        intercept: bool,
        n_degrees: int = 0,
    ):
        K = len(classes)
        self.n_features, self.intercept = n_features, intercept
        self.basis = None
        if n_degrees:
            if n_degrees >= K:
                raise ValueError(
                    f"weights is {structure.weights!r}, of degree {n_degrees}, expected less than "
                    f"{K}, the number of labels; 'matrix' has a weight for every rank"
                )
            self.basis = rank_polynomials(K, n_degrees)
            self.table = Table(pair_table(self.basis))
            pair = Block("pair", "node", (1,), ("score",))
            layout = WeightLayout([pair], (n_features + intercept) * K * n_degrees, 0, False)
            self.row_axes = {"class": K, "degree": n_degrees}
            if n_degrees > 1:
                self.axis_names = {"degree": np.arange(1, n_degrees + 1)}
        else:
            block = Block("node", "node", (K, K), ("class", "rank"))
            layout = WeightLayout([block], n_features, 0, intercept)
            if structure.weights in ("auto", "smooth") and K <= mixed.MOST:
                self.node_mix = smooth_ranks(K)
        super().__init__(structure, layout)
        self.classes_ = classes

    def _examples(self, nodes: Any, offsets: np.ndarray, ranks: Any = None) -> Examples:
        """Combine checked rows; with polynomials, pairs of a label and a rank share them."""
        K = len(self.classes_)
        labels = None if ranks is None else ranks.ravel()
        if self.basis is None:
            return Examples(offsets, nodes, labels, K * offsets)
        n = len(offsets) - 1
        pairs = None if nodes is None else SharedRows(nodes, self.table, self.intercept)
        examples = Examples(K * K * offsets, pairs, labels, K * offsets)
        examples.topology = {"rows": np.full(n, K), "cols": np.full(n, K), "forbidden": None}
        return examples

    def suited_to(self, examples: Examples) -> tuple[RankingSpace, Examples]:
        """Return the space with the weights that left-out rows prefer, and its examples.

        Ridge regressions on ranks and on every label's distances from all ranks predict each row
        from the others.  Where the footrule of one is smaller by two standard errors, weights are
        "scores" or "matrix".

        Parameters
        ----------
        examples : Examples

        Returns
        -------
        space : RankingSpace
            This one, with "smooth" weights, if weights are given or neither is clearly better.
        examples : Examples
        """
        if self.structure.weights != "auto":
            return self, examples
        from structsolve.plugins.permutation.choice import better_weights  # takes part in training

        ranks = examples.labels.reshape(examples.n, -1)
        weights = better_weights(examples.nodes, ranks, examples.sample_weight)
        if weights == "smooth":
            return self, examples
        structure = PermutationStructure("ranking", weights)
        space = RankingSpace(
            structure, self.classes_, self.n_features, self.intercept, degrees(weights)
        )
        packed = space._examples(examples.nodes, examples.offsets, ranks)
        return space, replace(packed, sample_weight=examples.sample_weight)

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Return packed rows; a label has K ranks; see :meth:`structsolve.Space.pack`.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, n_features)
        Y : array or data frame of shape (n, K), optional
            Rankings.
        unseen : {"error", "extra"}
            Ignored: there are no other ranks.

        Raises
        ------
        ValueError
            For columns that differ from training, and rows that are not rankings.
        """
        if holds_pairs(X):
            raise ValueError(
                "X holds features of pairs, expected a matrix with one row per ranking, as in "
                "training"
            )
        nodes, offsets = packing.single_rows(X, self.n_features, compress=True)
        K = len(self.classes_)
        ranks = None
        if Y is not None:
            check_columns(Y, self.classes_, self.classes_.dtype.kind not in "US")
            ranks = rankings(Y, nodes.shape[0], K)
        return self._examples(nodes, offsets, ranks)

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse rows that are no rankings."""
        K = len(self.classes_)
        ranks = flat.reshape(examples.n, K)
        if not (np.sort(ranks, axis=1) == np.arange(K)).all():
            rankings(ranks, examples.n, K)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return this many rankings without features: one row of scores [label, rank] each."""
        return self._examples(None, packing.row_offsets(sizes, topology))

    def unpack(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return rankings."""
        return flat.reshape(examples.n, len(self.classes_)).astype(np.int64)

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> np.ndarray:
        """Return the scores or marginals of labels at ranks."""
        K = len(self.classes_)
        return np.asarray(flat).reshape(examples.n, K, -1)[:, :, :K]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        meta = {"kind": "ranking", "n_features": self.n_features, "intercept": self.intercept}
        return meta, {"classes": self.classes_}

    def allowed(self, examples: Examples, i: int) -> np.ndarray:
        """Return that all pairs of labels and ranks are allowed."""
        return np.ones((len(self.classes_),) * 2, dtype=bool)
