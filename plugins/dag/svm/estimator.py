"""HierarchicalSVM: classes or label sets of a hierarchy, with fairly penalised node vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve import registry
from structsolve.estimators.fitting import TrainingData
from structsolve.estimators.structured_svm import StructuredSVM
from structsolve.plugins.dag.labels import flat_column
from structsolve.plugins.dag.levels import is_table
from structsolve.plugins.dag.path_cost import PathCost
from structsolve.plugins.dag.svm.class_weight import weighed_leaves
from structsolve.plugins.dag.svm.learned import LearnedFitting
from structsolve.plugins.dag.svm.sparse_model import SparseModel
from structsolve.plugins.dag.svm.weights import NodeWeights, node_weights, parse
from structsolve.potentials.mercer import Kernel
from structsolve.solvers.base import Solver
from structsolve.solvers.problem import Problem
from structsolve.utils.params import check_choice, check_count


class HierarchicalSVM(LearnedFitting):
    """Classifier whose classes or labels are nodes of a hierarchy and share ancestors' weights.

    A class scores ``sum U_n . x`` over its node and all its ancestors.  Training minimises
    ``alpha/2 sum ||U_n||^2 / a_n + mean_i H_i(U)``: the node weights ``a`` make up for paths of
    unequal length.

    Parameters
    ----------
    hierarchy : networkx.DiGraph, mapping or array of shape (m, 2), optional
        Edges from parents to children: a tree, a forest or a directed acyclic graph. Without one,
        it is learned from y, a table of levels.
    normalization : str, default="rho:2"
        "none": all ``a_n`` are 1 (hierarchical SVM). "rho:RHO", RHO > 1: weights of least
        ``sum a^RHO``, with sums of 1 over each leaf and its ancestors; copies of nodes matter less
        as RHO nears 1. "maxmin": the weights whose smallest is largest. "learned": weights with
        sums of at most 1, learned from the data (Shared SVM).
    directional : bool, default=False
        No child weighs less than a parent ("rho", "maxmin").
    slack : float, optional
        The sums lie in ``[1, slack]`` ("rho", "maxmin"); 1 on trees and 1.5 on other graphs.
    labels : {"auto", "single-leaf", "leaf-union", "closed"}, default="auto"
        The kind of labels: one leaf per example, unions of paths to leaves, or any sets that
        contain the parents of their nodes. "auto": one leaf per example if y is 1-D, else unions.
    close : bool, default=False
        Add missing ancestors to the labels of y; if False, such labels are refused.
    structure_name : str, optional
        A structure whose ``file_params`` name "hierarchy"; by default the first of a plugin,
        :class:`~structsolve.plugins.dag.DagStructure`.
    loss : str or object, default="auto"
        A loss of the structure, or a :class:`~structsolve.plugins.dag.PathCost`. "auto"
        for single leaves is "hamming" without normalization, and else ``sqrt(sum of a)`` over the
        nodes on the path of only one of two leaves, with the weights of "rho:2" for "learned"; for
        sets it is "hamming" without normalization and "leaf" otherwise.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of single leaves by name, 1 for those left out: factors of the weights of their
        examples. "balanced": all leaves that occur have the same total weight.
    surrogate : str or object, default="margin"
        As in :class:`StructuredSVM`, like all parameters below without a description.
    solver : str or Solver, default="auto"
        As there; "auto" is "sgd" with ``sparse=True``, else "bcfw".
    oracle : str or structsolve.lp.Backend, optional
        As there.
    alpha : float or "auto", default="auto"
        As there.
    max_iter : int, default=100
        Maximum number of passes; with "learned", per alternation.
    tol : float, default=1e-3
        Relative gap; with "learned", of the joint problem.
    max_alternations : int, default=50
        Maximum number of updates of learned weights.
    sparse : bool, default=False
        Keep only nonzero weights, for hierarchies and features too many for a weight per pair: one
        leaf per example of a tree, solver "sgd", surrogate "margin". Memory then grows with the
        number of weights that training changes, ``coef_["node"]`` is a CSR matrix, and the model
        gives ``predict`` and ``score``.
    fit_intercept : bool, default=True
        See :class:`StructuredSVM`.
    penalize_intercept : bool, default=True
        As there.
    scale_features : {"auto", True, False, "std", "max-abs"}, default="auto"
        As there; with ``sparse=True`` "auto" is False, and no other is taken.
    kernel : str, callable or None, default=None
        As there; not with "learned".
    kernel_params : dict, optional
        As there.
    cache_size : float, default=200
        As there.
    warm_start : bool, default=False
        As there; not with "learned".
    early_stopping : bool, default=False
        As there; not with "learned".
    validation_fraction : float, default=0.1
        As there.
    n_iter_no_change : int, default=5
        As there.
    callbacks : list of callable, optional
        As there.
    checkpoint : path, optional
        As there.
    n_jobs : int or None, default=1
        As there.
    random_state : int, RandomState or None, default=0
        As there.
    verbose : int, default=0
        As there.

    Attributes
    ----------
    node_weights_ : ndarray of shape (n_nodes,)
        ``a``, in the order of ``nodes_``; it may underflow to 0 for RHO near 1.
    log_node_weights_ : ndarray of shape (n_nodes,)
        Their logarithms.
    nodes_ : ndarray
        Names of the nodes, the columns of ``coef_["node"]``, which holds ``U``.
    history_ : list of dict
        As in :class:`StructuredSVM`. With "learned", each record has the number of its
        ``"alternation"``. The last record of each alternation has the joint ``"objective"``, which
        never rises, and ``"joint_gap"``, a certified bound of its distance to the optimum.

    Notes
    -----
    Unless ``loss`` is given, ``score`` is the accuracy for single leaves, and the share of correct
    nodes for sets.

    Examples
    --------
    >>> import networkx as nx
    >>> from structsolve import HierarchicalSVM
    >>> animals = nx.DiGraph([("bird", "owl"), ("bird", "duck"), ("mammal", "cat")])
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]], ["owl", "duck", "cat"]
    >>> model = HierarchicalSVM(animals, normalization="maxmin", alpha=0.01).fit(X, y)
    >>> model.predict([[1.0, 2.0]]).tolist()
    ['duck']
    >>> dict(zip(model.nodes_.tolist(), model.node_weights_.tolist()))
    {'bird': 0.5, 'owl': 0.5, 'duck': 0.5, 'mammal': 0.5, 'cat': 0.5}
    """

    _extras = ("log_node_weights_",)
    _models = (*StructuredSVM._models, SparseModel)

    def __init__(
        self,
        hierarchy: Any = None,
        *,
        normalization: str = "rho:2",
        directional: bool = False,
        slack: float | None = None,
        labels: str = "auto",
        close: bool = False,
        structure_name: str | None = None,
        loss: Any = "auto",
        class_weight: Any = None,
        surrogate: Any = "margin",
        solver: Any = "auto",
        oracle: Any = None,
        alpha: float | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-3,
        max_alternations: int = 50,
        sparse: bool = False,
        fit_intercept: bool = True,
        penalize_intercept: bool = True,
        scale_features: bool | str = "auto",
        kernel: Any = None,
        kernel_params: Any = None,
        cache_size: float = 200,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        callbacks: Any = None,
        checkpoint: Any = None,
        n_jobs: int | None = 1,
        random_state: Any = 0,
        verbose: int = 0,
    ):
        self._keep(locals())
        self.hierarchy, self.structure_name = hierarchy, structure_name
        self.normalization, self.directional, self.slack = normalization, directional, slack
        self.labels, self.close, self.sparse = labels, close, sparse
        self.max_alternations = max_alternations

    @property
    def structure(self) -> Any:
        """The structure for labels of this form."""
        if self.labels == "auto" and hasattr(self, "space_"):
            return self.space_.structure
        return self._structure("single-leaf" if self.labels == "auto" else self.labels)

    @property
    def nodes_(self) -> np.ndarray:
        """Names of the nodes, in the order of columns."""
        return self.space_.hierarchy.nodes

    @property
    def node_weights_(self) -> np.ndarray:
        """The weights of the nodes."""
        return NodeWeights(self.log_node_weights_).values

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, validation: Any = None
    ) -> HierarchicalSVM:
        """Train.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, n_features)
        y : leaves, a table of levels, lists of labels, or indicators
            One leaf per example; a data frame or 2-D array of names, a path from a root a row; a
            list of labels per example; or a matrix of 0 and 1 with one column per node, in the
            hierarchy's order.
        sample_weight : array of shape (n,), optional
        validation : tuple (X, y), optional
            As for :meth:`StructuredSVM.fit`; not with learned weights.

        Returns
        -------
        HierarchicalSVM
            Itself.
        """
        if not is_table(y, self.hierarchy is None):
            y = _plain_leaves(y, self.labels in ("auto", "single-leaf"))
        super().fit(X, y, sample_weight, validation)
        return self

    def predict_node_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every node, the sum of those of the leaves below it.

        Parameters
        ----------
        X : as for ``fit``

        Returns
        -------
        ndarray of shape (n, n_nodes)
            In the order of ``nodes_``; that of an inner node is the sum of its children's.

        Examples
        --------
        >>> from structsolve import HierarchicalSVM
        >>> X, y = [[1.0], [0.5], [-1.0]], [["bird", "owl"], ["bird", "duck"], ["mammal", ""]]
        >>> model = HierarchicalSVM(alpha=0.1).fit(X, y).calibrate(X, y)
        >>> model.nodes_.tolist()
        ['bird', 'owl', 'duck', 'mammal']
        >>> bird, owl, duck, mammal = model.predict_node_proba([[2.0]])[0].round(6)
        >>> bool(abs(bird - owl - duck) < 1e-5 and abs(bird + mammal - 1) < 1e-5)
        True
        """
        probabilities = np.asarray(self.predict_proba(X))
        space = self.space_
        if not space.single:
            return probabilities
        order = np.searchsorted(space.hierarchy.leaves, space.leaf_columns)
        return np.asarray(probabilities @ space.hierarchy.paths[order].toarray())

    # -- parts of fit ---------------------------------------------------------------------------

    def _check_settings(self) -> None:
        super()._check_settings()
        check_count("max_alternations", self.max_alternations)

    def _check_combination(self, validated: bool) -> None:
        check_choice("labels", self.labels, ("auto", "single-leaf", "leaf-union", "closed"))
        if self.sparse:
            self._check_sparse(validated)
        elif self._learns_node_weights():
            self._check_learned(validated)
        super()._check_combination(validated)

    def _solver(self, examples: Any = None) -> Solver:
        if isinstance(self.solver, str) and self.solver == "auto":
            name = "sgd" if self.sparse else "bcfw"
            return registry.default().find("solvers", name).factory()
        return super()._solver(examples)

    def _learns_node_weights(self) -> bool:
        return parse(self.normalization)[0] == "learned"

    def _train(self, data: TrainingData, rng: np.random.Generator) -> StructuredSVM:
        if self.sparse:
            return self._train_sparse(data, rng)
        if self._learns_node_weights():
            return self._train_learned(data, rng)
        return super()._train(data, rng)

    def _structure(self, labels: str) -> Any:
        name = self.structure_name
        if name is None:
            name = registry.default().first_with("hierarchy")
        if name is None:
            raise ValueError(
                f"no plugin brings a structure over hierarchies{registry.default().broken_note()}"
            )
        factory = registry.default().factory_of("structures", name)
        if "hierarchy" not in getattr(factory, "file_params", ()):
            raise ValueError(
                f"structure_name is {name!r}, expected a structure that takes a hierarchy, which "
                "names it in file_params"
            )
        return registry.get_structure(
            name, hierarchy=self.hierarchy, labels=labels, close=self.close
        )

    def _structure_for(self, y: Any) -> Any:
        kind = "single-leaf" if is_table(y, self.hierarchy is None) else _kind_of(y)
        return self._structure(kind if self.labels == "auto" else self.labels)

    def _problem(
        self, space: Any, examples: Any, kernel: Kernel | None, dense: bool, gram: bool = True
    ) -> Problem:
        if self.sparse:
            raise ValueError("sparse=True needs all examples at once; use fit")
        if self._learns_node_weights():
            raise ValueError("normalization='learned' needs all examples at once; use fit")
        weights = node_weights(space.hierarchy, self.normalization, self.directional, self.slack)
        self.log_node_weights_ = weights.log
        scale = None if self.normalization == "none" else weights.sqrt
        examples = weighed_leaves(self.class_weight, space, examples)
        loss = self._training_loss(space, weights.values)
        return self._problem_of(
            space, examples, loss, gram=gram, kernel=kernel, dense=dense, node_scale=scale
        )

    def _task_loss(self, space: Any) -> Any:
        return self.loss  # `_training_loss` says what "auto" is

    def _training_loss(self, space: Any, weights: np.ndarray) -> Any:
        if not isinstance(self.loss, str) or self.loss != "auto":
            return self.loss
        kind, _ = parse(self.normalization)
        if kind == "none":
            return "hamming"
        if not space.single:
            return "leaf"
        if kind == "learned":
            # The required margins stay fixed while the weights are learned.
            weights = node_weights(space.hierarchy, "rho:2").values
        return PathCost(weights)

    def _scored_loss(self, space: Any) -> Any:
        if self.sparse:
            return "zero-one"
        if not isinstance(self.loss, str) or self.loss != "auto":
            return self.loss
        return "zero-one" if space.single else "hamming"

    # -- files ----------------------------------------------------------------------------------

    def saved_params(self) -> dict[str, Any]:
        """Return the parameters in the form of model files.

        Returns
        -------
        dict of str to object
        """
        params = self.get_params(deep=False)
        if self.hierarchy is not None:  # else it was learned
            params["hierarchy"] = self.space_.structure.saved_params()["hierarchy"]
        return params


def _plain_leaves(y: Any, single: bool) -> Any:
    """Return y unchanged, but a column of single leaves flattened, as in scikit-learn."""
    if y is None:
        raise ValueError(
            "y is None, expected one leaf per row of X: this estimator requires y to be passed, "
            "but the target y is None"
        )
    if hasattr(y, "__array__") and not hasattr(y, "__len__"):
        y = np.asarray(y)
    y = flat_column(y) if single else y
    if isinstance(y, np.ndarray) and y.dtype.kind in "iufUS" and y.ndim == 1 and len(y):
        from sklearn.utils.multiclass import check_classification_targets  # heavy

        check_classification_targets(y)
    return y


def _kind_of(y: Any) -> str:
    """Return the kind of labels in y, for "auto"."""
    if len(getattr(y, "shape", (0,))) != 1:
        return "single-leaf" if y.shape[1:] == (1,) else "leaf-union"
    if y is None or isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        return "single-leaf"  # which refuses y with an error
    values = y.to_numpy() if hasattr(y, "to_numpy") else y
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return "single-leaf"
    sets = any(not isinstance(e, (str, bytes)) and hasattr(e, "__iter__") for e in values)
    return "leaf-union" if sets else "single-leaf"
