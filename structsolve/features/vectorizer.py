# Named features to sparse matrices: a scikit-learn transformer for lists of sequences.
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.utils.validation import check_is_fitted

from ..utils.params import cloned_transformer


class SequenceVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn sequences of named features into one sparse matrix per sequence.

    A sequence is a list of items.  An item is a dict of features, as scikit-learn's
    `DictVectorizer` takes them, or any iterable of strings, features of value 1, as CRFsuite's
    users have them; a string that stands twice in an item counts 2.

    Parameters
    ----------
    vectorizer : transformer, optional
        What turns dicts into rows: by default ``DictVectorizer()``; `FeatureHasher` needs no
        memory for names.  Any other transformer of a list of dicts works, more slowly.

    Attributes
    ----------
    vectorizer_ : transformer
        The fitted one.

    Notes
    -----
    Text repeats itself: millions of features are a few hundred thousand different ones.  Each
    different feature is numbered by one dictionary look-up per occurrence and goes through
    `vectorizer` once; a product of two sparse matrices puts the rows together.

    Examples
    --------
    >>> X = [[{"word": "Vienna", "len": 6}, {"word": "waits", "len": 5}], [["word=Vienna", "end"]]]
    >>> vectorizer = SequenceVectorizer()
    >>> rows = vectorizer.fit_transform(X)
    >>> [matrix.toarray().tolist() for matrix in rows]
    [[[0.0, 6.0, 1.0, 0.0], [0.0, 5.0, 0.0, 1.0]], [[1.0, 0.0, 1.0, 0.0]]]
    >>> vectorizer.get_feature_names_out().tolist()
    ['end', 'len', 'word=Vienna', 'word=waits']
    """

    def __init__(self, vectorizer: Any = None) -> None:
        self.vectorizer = vectorizer

    def fit(self, X: Iterable[Iterable[Any]], y: Any = None) -> SequenceVectorizer:
        """Learn the names of the features in `X`.

        Parameters
        ----------
        X : iterable of sequences
        y : ignored

        Returns
        -------
        SequenceVectorizer
            Itself.

        Raises
        ------
        TypeError, ValueError
            For what is no sequence, item or feature; it names the example and the position.
        """
        self.vectorizer_ = self._fresh()
        _Tokens(X).rows(self.vectorizer_, self.vectorizer_.fit)
        return self

    def _fresh(self) -> Any:
        if self.vectorizer is None:
            return DictVectorizer()
        return cloned_transformer("vectorizer", self.vectorizer)

    def fit_transform(self, X: Iterable[Iterable[Any]], y: Any = None) -> list[Any]:
        """Learn the names of the features in `X` and return its matrices.

        Parameters
        ----------
        X, y : as for `fit`

        Returns
        -------
        list of scipy.sparse.csr_matrix
            As `transform` returns it.
        """
        self.vectorizer_ = self._fresh()
        return _Tokens(X).matrices(self.vectorizer_, self.vectorizer_.fit_transform)

    def transform(self, X: Iterable[Iterable[Any]]) -> list[Any]:
        """Return one matrix per sequence; features that `fit` has not seen are left out.

        Parameters
        ----------
        X : iterable of sequences
            May be a generator: nothing but numbers is kept of it.

        Returns
        -------
        list of scipy.sparse.csr_matrix
            Each of shape (length, n_features).
        """
        check_is_fitted(self)
        return _Tokens(X).matrices(self.vectorizer_, self.vectorizer_.transform)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the name of every column.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str

        Raises
        ------
        AttributeError
            Where the vectorizer keeps no names, as `FeatureHasher`.
        """
        check_is_fitted(self)
        if not hasattr(self.vectorizer_, "get_feature_names_out"):
            kind = type(self.vectorizer_).__name__
            raise AttributeError(f"{kind} keeps no feature names; use DictVectorizer to have them")
        return self.vectorizer_.get_feature_names_out()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        tags.no_validation = True
        return tags

    @classmethod
    def from_feature_names(cls, names: Iterable[str]) -> SequenceVectorizer:
        """Rebuild a fitted vectorizer from its `get_feature_names_out`.

        Parameters
        ----------
        names : iterable of str
            Name of each column, in order.

        Returns
        -------
        SequenceVectorizer

        Examples
        --------
        >>> vectorizer = SequenceVectorizer.from_feature_names(["a", "b"])
        >>> vectorizer.transform([[["b", "unknown"]]])[0].toarray().tolist()
        [[0.0, 1.0]]
        """
        inner = DictVectorizer()
        inner.feature_names_ = [str(name) for name in names]
        inner.vocabulary_ = {name: j for j, name in enumerate(inner.feature_names_)}
        fitted = cls()
        fitted.vectorizer_ = inner
        return fitted


def split_rows(matrix: Any, offsets: Any) -> list[Any]:
    """Cut a matrix into blocks of rows, ``offsets[i]:offsets[i + 1]``, without copying its values.

    Parameters
    ----------
    matrix : ndarray or sparse matrix
        Sparse ones other than CSR are converted.
    offsets : sequence of int
        From 0 to the number of rows.

    Returns
    -------
    list of ndarray or of CSR matrices
        Views: a change of their values is one of `matrix`.

    Examples
    --------
    >>> [block.tolist() for block in split_rows(np.eye(3), [0, 1, 3])]
    [[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]
    """
    bounds = np.asarray(offsets).tolist()
    pairs = pairwise(bounds)
    if isinstance(matrix, np.ndarray):
        return [matrix[a:b] for a, b in pairs]
    matrix = matrix.tocsr()
    kind: Any = type(matrix)
    width = matrix.shape[1]
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    ends = indptr.tolist()
    state = vars(matrix)
    fast = isinstance(state.get("_shape"), tuple)
    blocks = []
    for a, b in pairs:
        lo, hi = ends[a], ends[b]
        parts = data[lo:hi], indices[lo:hi], indptr[a : b + 1] - indptr[a]
        if fast:
            # The parts of a valid matrix are valid: scipy's checks would be most of the time.
            block = object.__new__(kind)
            vars(block).update(state)
            block.data, block.indices, block.indptr = parts
            block._shape = (b - a, width)
        else:
            block = kind(parts, shape=(b - a, width), copy=False)
        blocks.append(block)
    return blocks


class _Tokens:
    """All items of all sequences: a number per feature, and where items and sequences end."""

    def __init__(self, X: Iterable[Iterable[Any]]) -> None:
        if isinstance(X, str | Mapping) or not isinstance(X, Iterable):
            raise TypeError(f"X: found {_show(X)}; expected a list of sequences of items")
        numbers: dict[Any, int] = _Numbering()
        find = numbers.__getitem__
        numbered: list[np.ndarray] = []
        counts: list[int] = []
        lengths: list[int] = []
        for i, sequence in enumerate(X):
            if isinstance(sequence, str | Mapping) or not isinstance(sequence, Iterable):
                raise TypeError(
                    f"X[{i}]: found {_show(sequence)}; expected a sequence: a list of items, each "
                    "a dict or a list of strings"
                )
            items = [_features(item, i, t) for t, item in enumerate(sequence)]
            if not items:
                raise ValueError(f"X[{i}]: found an empty sequence; expected at least one item")
            try:
                ids = np.fromiter(map(find, chain.from_iterable(items)), np.intc)
            except TypeError:  # an unhashable value, such as a list of strings
                items = [list(_flatten(item, f"X[{i}][{t}]")) for t, item in enumerate(items)]
                ids = np.fromiter(map(find, chain.from_iterable(items)), np.intc)
            numbered.append(ids)
            counts.extend(map(len, items))
            lengths.append(len(items))
        if not lengths:
            raise ValueError("X: found no sequences; expected at least one")
        self.distinct = list(numbers)
        self.ids = np.concatenate(numbered)
        self.ends = np.r_[0, np.cumsum(counts)]
        self.offsets = np.r_[0, np.cumsum(lengths)]

    def matrices(self, inner: Any, method: Callable) -> list[Any]:
        """The rows that `method` makes, cut into sequences."""
        rows = self.rows(inner, method)
        if self._separable(inner):
            ones = np.ones(len(self.ids), rows.dtype)
            shape = len(self.ends) - 1, len(self.distinct)
            rows = sparse.csr_matrix((ones, self.ids, self.ends), shape=shape) @ rows
            if sparse.issparse(rows):
                rows.sort_indices()
        return split_rows(rows, self.offsets)

    def rows(self, inner: Any, method: Callable) -> Any:
        """Call `method` once: on the distinct features, or on all items if it must see them."""
        if not self._separable(inner):
            return method([self._as_dict(self.ids[a:b]) for a, b in pairwise(self.ends.tolist())])
        pairs = [self._pair(k) for k in range(len(self.distinct))]
        kind = getattr(inner, "input_type", "dict")
        if kind == "string":
            return method([[name if v == 1 else f"{name}={v}"] for name, v in pairs])
        return method([[pair] if kind == "pair" else dict([pair]) for pair in pairs])

    def _separable(self, inner: Any) -> bool:
        return isinstance(inner, DictVectorizer | FeatureHasher) and len(self.distinct) > 0

    def _as_dict(self, ids: np.ndarray) -> dict[str, Any]:
        item: dict[str, Any] = {}
        for k in ids.tolist():
            name, value = self._pair(k)
            item[name] = item[name] + value if name in item else value
        return item

    def _pair(self, k: int) -> tuple[str, Any]:
        feature = self.distinct[k]
        if isinstance(feature, str):
            return feature, 1
        if isinstance(feature, tuple) and len(feature) == 2 and isinstance(feature[0], str):
            return feature
        token = int(np.searchsorted(self.ends, np.flatnonzero(self.ids == k)[0], "right")) - 1
        i = int(np.searchsorted(self.offsets, token, "right")) - 1
        raise ValueError(
            f"X[{i}][{token - self.offsets[i]}]: found the feature {_show(feature)}; expected a "
            "string, or a name (string) with a value"
        )


class _Numbering(dict):
    """Number keys in the order of their first look-up."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def _features(item: Any, i: int, t: int) -> Any:
    """What an item holds: strings, or pairs of a name and a value."""
    if isinstance(item, dict | Mapping):
        return item.items()
    if isinstance(item, str) or not isinstance(item, Iterable):
        raise TypeError(f"X[{i}][{t}]: found {_show(item)}; expected a dict or a list of strings")
    return item if isinstance(item, list) else list(item)


def _flatten(features: Iterable[Any], where: str) -> Iterable[Any]:
    """Take lists of strings apart, as `DictVectorizer` reads them."""
    for feature in features:
        is_pair = isinstance(feature, tuple) and len(feature) == 2
        listed = is_pair and isinstance(feature[1], Iterable) and not isinstance(feature[1], str)
        for one in [(feature[0], value) for value in feature[1]] if listed else [feature]:
            try:
                hash(one)
            except TypeError:
                raise ValueError(
                    f"{where}: found the feature {_show(feature)}; expected a name (string) with a "
                    "number, a string or a list of strings"
                ) from None
            yield one


def _show(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
