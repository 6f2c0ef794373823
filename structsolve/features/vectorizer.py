# Named features to sparse matrices: a scikit-learn transformer for lists of sequences.
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.utils.validation import check_is_fitted

from ..utils.params import cloned_transformer
from ..utils.sparse import valid_csr
from ._numbering import Numbering, show

# Number of sequences below which features are looked up one by one.
FEW = 8


class SequenceVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn sequences of named features into one sparse matrix per sequence.

    A sequence is a list of items.  An item is a dict of features, or any iterable of strings,
    features of value 1, as for CRFsuite; a string that appears twice in an item counts 2.  A dict
    may contain:

    =================================== ==================================================
    ``{"len": 6, "title": True}``       the numbers 6 and 1 (False: 0) in columns of these names
    ``{"word": "Oslo"}``                1 in the column ``word=Oslo``
    ``{"tag": ["x", "y"]}``             1 in ``tag=x`` and 1 in ``tag=y``; also a set or a tuple
    ``{"emb": [0.1, 0.2]}``             numbers in ``emb[0]`` and ``emb[1]``; also a 1-D array
    ``{"next": {"len": 3, "w": "a"}}``  3 in ``next:len``, 1 in ``next:w=a``; may be nested deeper
    None, bytes, anything else          an error that names the place
    =================================== ==================================================

    Parameters
    ----------
    vectorizer : transformer, optional
        Transformer of dicts into rows: by default ``DictVectorizer()``; `FeatureHasher` needs no
        memory for names.  Any other transformer of lists of dicts works, but is slower.
    empty : bool, default=False
        Sequences without items become matrices without rows, which
        ``ChainStructure(empty=True)`` takes; by default they are refused.

    Attributes
    ----------
    vectorizer_ : transformer
        The fitted one.

    Notes
    -----
    In text, millions of features are occurrences of a few hundred thousand distinct ones.  Features
    are numbered by one look-up per occurrence, in compiled code; only distinct features go through
    `vectorizer`.  Transformers other than ``DictVectorizer`` and ``FeatureHasher`` get every item
    unchanged.

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

    def __init__(self, vectorizer: Any = None, empty: bool = False) -> None:
        self.vectorizer = vectorizer
        self.empty = empty

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
            For invalid sequences, items or features, naming the example and the position.
        """
        self.vectorizer_ = self._fresh()
        if self._separable():
            _Tokens(X, self.empty).columns(self.vectorizer_, self.vectorizer_.fit_transform)
        else:
            self.vectorizer_.fit(_whole(X, self.empty)[0])
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
        return self._matrices(X, self.vectorizer_.fit_transform)

    def transform(self, X: Iterable[Iterable[Any]]) -> list[Any]:
        """Return one matrix per sequence; features that `fit` has not seen are left out.

        Parameters
        ----------
        X : iterable of sequences
            May be a generator: only numbers are stored.

        Returns
        -------
        list of scipy.sparse.csr_matrix
            Each of shape (length, n_features).
        """
        check_is_fitted(self)
        return self._matrices(X, self.vectorizer_.transform)

    def _separable(self) -> bool:
        # One row is the sum of the rows of its features.
        return type(self.vectorizer_) in (DictVectorizer, FeatureHasher)

    def _matrices(self, X: Iterable[Iterable[Any]], method: Callable) -> list[Any]:
        if self._separable():
            inner = self.vectorizer_
            # Few sentences have mostly distinct features, which are looked up directly in the names
            # that fit() learned; the features of many sentences are numbered first.
            few = method.__name__ == "transform" and isinstance(X, (list, tuple)) and len(X) <= FEW
            if few and type(inner) is DictVectorizer:
                return _Tokens(X, self.empty, inner).matrices(inner, method)
            return _Tokens(X, self.empty).matrices(inner, method)
        items, offsets = _whole(X, self.empty)
        return split_rows(method(items), offsets)

    @property
    def set_output(self) -> Any:
        """Not available: the result is one matrix per example, which no table can hold."""
        raise AttributeError(
            f"{type(self).__name__} has no set_output: its result is one matrix for each example, "
            "which no table holds; get_feature_names_out() names their columns"
        )

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
            If the vectorizer keeps no names, such as `FeatureHasher`.
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
        fitted = cls()
        fitted.vectorizer_ = DictVectorizer()
        _name_columns(fitted.vectorizer_, [str(name) for name in names])
        return fitted


def _name_columns(inner: DictVectorizer, names: Iterable[str]) -> None:
    # Set the attributes of its fit(), which would process every feature of every item again.
    inner.feature_names_ = list(names)
    inner.vocabulary_ = {name: j for j, name in enumerate(inner.feature_names_)}


def split_rows(matrix: Any, offsets: Any) -> list[Any]:
    """Split a matrix into blocks of rows, ``offsets[i]:offsets[i + 1]``, without copying values.

    Parameters
    ----------
    matrix : ndarray or sparse matrix
        Sparse ones other than CSR are converted.
    offsets : sequence of int
        From 0 to the number of rows.

    Returns
    -------
    list of ndarray or of CSR matrices
        Views: changes of their values also change `matrix`.

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
    width = matrix.shape[1]
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    ends = indptr.tolist()
    # The parts of a valid matrix are valid.
    canonical = bool(matrix.has_canonical_format)
    fast = type(matrix) is sparse.csr_matrix
    blocks = []
    for a, b in pairs:
        lo, hi = ends[a], ends[b]
        parts = data[lo:hi], indices[lo:hi], indptr[a : b + 1] - indptr[a]
        if fast:
            blocks.append(valid_csr(*parts, width, canonical))
        else:
            blocks.append(type(matrix)(parts, shape=(b - a, width), copy=False))
    return blocks


class _Tokens:
    """All items of all sequences: a number per feature, and the ends of items and sequences.

    Numbers are columns if ``known``, a fitted ``DictVectorizer``, is given.
    """

    def __init__(self, X: Iterable[Iterable[Any]], empty: bool, known: Any = None) -> None:
        numbering = Numbering(*(() if known is None else (known.vocabulary_, known.separator)))
        ends = [0]
        self.offsets = [0]
        for i, sequence in enumerate(_sequences(X)):
            numbering.add_items(sequence, i, ends)
            if len(ends) - 1 == self.offsets[-1] and not empty:
                raise _no_items(i)
            self.offsets.append(len(ends) - 1)
        if len(self.offsets) == 1:
            raise ValueError("X: found no sequences; expected at least one")
        self.ends = np.array(ends, np.int64)
        self.names, self.texts = numbering.names, numbering.texts
        self.numbering, self.known = numbering, known

    def matrices(self, inner: Any, method: Callable) -> list[Any]:
        """The rows of all items, split into sequences."""
        numbering, ends = self.numbering, self.ends
        if type(inner) is DictVectorizer:
            if self.known is None:
                numbering.renumber(self.columns(inner, method)[0], ends)
            canonical = numbering.sort_items(ends)
            ids, values = numbering.occurrences()
            data = np.ones(len(ids), inner.dtype) if values is None else values.astype(inner.dtype)
            starts = ends.astype(np.int32) if ends[-1] < 2**31 else ends
            ids = ids.astype(starts.dtype, copy=False)
            rows = valid_csr(data, ids, starts, len(inner.vocabulary_), canonical)
        else:
            ids, values = numbering.occurrences()
            column, factor, width = self.columns(inner, method)
            known = column >= 0
            if not known.all():
                kept = known[ids]
                ends = np.r_[0, np.cumsum(kept)][ends]
                ids, values = ids[kept], None if values is None else values[kept]
            data = factor[ids]
            if values is not None:
                data = (data * values).astype(factor.dtype)
            rows = sparse.csr_matrix((data, column[ids], ends), shape=(len(ends) - 1, width))
            canonical = False
        if not canonical:
            rows.sum_duplicates()
        is_sparse = getattr(inner, "sparse", True)
        return split_rows(rows if is_sparse else rows.toarray(), self.offsets)

    def columns(self, inner: Any, method: Callable) -> tuple[np.ndarray, np.ndarray, int]:
        """Column (-1 for none) and factor of each distinct feature, and the width."""
        if type(inner) is DictVectorizer:
            names = self.full_names(inner.separator)
            ones = np.ones(len(names), inner.dtype)
            if method.__name__ != "transform":
                order: Any = range(len(names))
                if inner.sort:
                    order = sorted(order, key=names.__getitem__)
                _name_columns(inner, dict.fromkeys(map(names.__getitem__, order)))
                if len(inner.vocabulary_) == len(names):
                    column = np.empty(len(names), np.int32)
                    column[order] = np.arange(len(names))
                    return column, ones, len(names)
            column_of = inner.vocabulary_.get
            column = np.fromiter((column_of(name, -1) for name in names), np.int32, len(names))
            return column, ones, len(inner.vocabulary_)
        kind = getattr(inner, "input_type", "dict")
        if not self.names:
            return np.zeros(0, np.int32), np.zeros(0, inner.dtype), inner.n_features
        if kind == "string":
            rows = method([[name] for name in self.full_names("=")])
        else:
            pairs = [
                (name, 1 if text is None else text) for name, text in zip(self.names, self.texts)
            ]
            rows = method([[pair] if kind == "pair" else dict([pair]) for pair in pairs])
        known = np.diff(rows.indptr) > 0
        column, factor = np.full(len(known), -1, np.int32), np.zeros(len(known), rows.dtype)
        column[known], factor[known] = rows.indices, rows.data
        return column, factor, rows.shape[1]

    def full_names(self, separator: str) -> list[str]:
        """The names of the distinct features, with their texts."""
        return [
            name if text is None else f"{name}{separator}{text}"
            for name, text in zip(self.names, self.texts)
        ]


def _no_items(i: int) -> ValueError:
    return ValueError(
        f"X[{i}]: found an empty sequence; expected at least one item (empty=True lets it pass)"
    )


def _whole(X: Iterable[Iterable[Any]], empty: bool) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Every item as a dict, for transformers of whole items, and the ends of sequences."""
    items: list[dict[str, Any]] = []
    offsets = [0]
    checked = Numbering()
    for i, sequence in enumerate(_sequences(X)):
        for t, item in enumerate(sequence):
            if isinstance(item, Mapping):
                items.append(dict(item))
                continue
            item = item if isinstance(item, list | str) else list(item)
            checked.add_items([item], i, [], t)
            counted: dict[str, Any] = {}
            for feature in item:
                name, value = (feature, 1) if isinstance(feature, str) else feature
                counted[name] = counted[name] + value if name in counted else value
            items.append(counted)
        if len(items) == offsets[-1] and not empty:
            raise _no_items(i)
        offsets.append(len(items))
    if len(offsets) == 1:
        raise ValueError("X: found no sequences; expected at least one")
    return items, np.array(offsets)


def _sequences(X: Any) -> Iterable[Any]:
    """The checked sequences of X."""
    if isinstance(X, str | Mapping) or not isinstance(X, Iterable):
        raise TypeError(f"X: found {show(X)}; expected a list of sequences of items")
    for i, sequence in enumerate(X):
        if isinstance(sequence, str | Mapping) or not isinstance(sequence, Iterable):
            raise TypeError(
                f"X[{i}]: found {show(sequence)}; expected a sequence: a list of items, each "
                "a dict or a list of strings"
            )
        yield sequence
