"""Any scikit-learn transformer of rows, for lists of sequences: applied to all nodes, stacked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted, has_fit_parameter

from ..examples.given import first_frame, is_sparse, listed
from ..examples.packed import Sequences
from ..examples.packing import stack_rows
from ..utils.masked import refuse_masked
from ..utils.params import cloned_transformer
from ..utils.sparse import split_rows
from ..utils.suggest import a_type


class NodeTransformer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Apply a transformer of rows to the nodes of every sequence or graph.

    Explicit features of a kernel (`sklearn.kernel_approximation.Nystroem`, `RBFSampler`) take
    kernels to data whose kernel matrix is too large; scaling and projections work as well.

    Parameters
    ----------
    transformer : transformer
        A transformer of matrices of shape (n_nodes, n_features).

    Attributes
    ----------
    transformer_ : transformer
        The fitted one.
    feature_names_in_ : ndarray, where X holds data frames

    Notes
    -----
    X is a list of matrices, a :class:`~structsolve.Sequences`, or a list of tuples whose first
    entry is the matrix of node features; the other entries are unchanged.  Structures with plain
    2-D X use the transformer directly.

    Examples
    --------
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> from structsolve import NodeTransformer, StructuredSVM
    >>> X = [[[-1.0], [1.0], [0.1]], [[0.0], [-1.2]]]
    >>> Y = [["far", "far", "near"], ["near", "far"]]
    >>> features = NodeTransformer(Nystroem(gamma=1.0, n_components=5, random_state=0))
    >>> model = make_pipeline(features, StructuredSVM("chain", alpha=0.01)).fit(X, Y)
    >>> [y.tolist() for y in model.predict([[[1.1], [0.05]]])]
    [['far', 'near']]
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> NodeTransformer:
        """Fit the transformer to all nodes of `X`, and to their labels if `y` has one for each.

        Parameters
        ----------
        X : list of matrices or of tuples, or Sequences
        y : list of label sequences, optional

        Returns
        -------
        NodeTransformer
            Itself.

        Raises
        ------
        ValueError
            For a plain 2-D X.
        """
        X = listed(X)
        matrix, offsets = self._stack(X, reset=True)
        self.transformer_ = cloned_transformer("transformer", self.transformer)
        self.transformer_.fit(matrix, *self._labels(y, offsets))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to `X` and transform it.

        Parameters
        ----------
        X, y : as for `fit`

        Returns
        -------
        list or Sequences
            As `transform` returns it.
        """
        X = listed(X)
        matrix, offsets = self._stack(X, reset=True)
        self.transformer_ = cloned_transformer("transformer", self.transformer)
        rows = self.transformer_.fit_transform(matrix, *self._labels(y, offsets))
        return self._unstack(rows, offsets, X)

    def transform(self, X: Any) -> Any:
        """Return `X` with transformed node features, in the same form.

        Parameters
        ----------
        X : list of matrices or of tuples, or Sequences

        Returns
        -------
        list or Sequences
        """
        check_is_fitted(self)
        X = listed(X)
        matrix, offsets = self._stack(X)
        return self._unstack(self.transformer_.transform(matrix), offsets, X)

    @property
    def set_output(self) -> Any:
        """Not available: the result is one matrix per example, not a table."""
        raise AttributeError(
            f"{type(self).__name__} has no set_output: its result is one matrix for each example, "
            "not a table; get_feature_names_out() names the columns"
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the transformer's names of the columns.

        Parameters
        ----------
        input_features : list of str, optional

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        return self.transformer_.get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags

    def _stack(self, X: Any, reset: bool = False) -> tuple[Any, np.ndarray]:
        if not isinstance(X, (list, tuple, Sequences)):
            raise ValueError(
                f"X is {a_type(X)}, expected a list with one matrix per example; for a "
                f"plain 2-D X use {self.transformer!r} itself"
            )
        refuse_masked(X, "X", "fill them in, x.filled(0.0)")
        if isinstance(X, (list, tuple)) and _tuples(X):
            X = [x[0] if isinstance(x, tuple) and x else x for x in X]
        _check_feature_names(self, first_frame(X), reset=reset)
        return stack_rows(X, min_rows=0)

    def _unstack(self, rows: Any, offsets: np.ndarray, X: Any) -> Any:
        rows = rows if is_sparse(rows) else np.asarray(rows)  # set_output() makes data frames
        if rows.shape[0] != offsets[-1]:
            raise ValueError(
                f"{type(self.transformer).__name__} made {rows.shape[0]} rows of {offsets[-1]}; "
                "expected one row per node"
            )
        if isinstance(X, Sequences):
            return Sequences(rows, np.diff(offsets), empty=True)
        blocks = split_rows(rows, offsets)
        if _tuples(X):
            return [(block, *x[1:]) for block, x in zip(blocks, X)]
        return blocks

    def _labels(self, y: Any, offsets: np.ndarray) -> tuple[Any, ...]:
        """The labels of all nodes, if `y` has one for each and the transformer's fit takes them."""
        if y is None or not has_fit_parameter(self.transformer, "y"):
            return ()
        try:
            labels = [np.asarray(one) for one in y]
        except ValueError:  # trees, spans: of several lengths
            return ()
        shapes = [(length,) for length in np.diff(offsets)]
        return (np.concatenate(labels),) if [one.shape for one in labels] == shapes else ()


def _tuples(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], tuple)
