# Named features to sparse matrices: a scikit-learn transformer for lists of sequences.
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.utils.validation import check_is_fitted

from ..utils.params import check_count, cloned_transformer
from ..utils.sparse import split_rows, valid_csr
from ..utils.suggest import a_type
from ._numbering import Names, Numbering, show


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
    ``{b"word": b"Oslo"}``              as strings in UTF-8, in lists too
    None, anything else                 an error that names the place
    =================================== ==================================================

    Parameters
    ----------
    vectorizer : transformer, optional
        Transformer of dicts into rows: by default ``DictVectorizer()``; `FeatureHasher` needs no
        memory for names.  Any other transformer of lists of dicts works, but is slower.
    empty : bool, default=False
        Sequences without items become matrices without rows, which
        ``ChainStructure(empty=True)`` takes; by default they are refused.
    min_freq : int, default=1
        Leave out features with fewer occurrences in the data of `fit`.  CRFsuite's
        ``feature.minfreq`` counts each pair of a feature and a label on its own.

    Attributes
    ----------
    vectorizer_ : transformer
        The fitted one.

    Notes
    -----
    In text, millions of features are occurrences of a few hundred thousand distinct ones.  Features
    are numbered by one look-up per occurrence, in compiled code; only distinct features go through
    ``FeatureHasher``.  Transformers other than ``DictVectorizer`` and ``FeatureHasher`` get every
    item unchanged.

    Examples
    --------
    >>> X = [[{"word": "Vienna", "len": 6}, {"word": "waits", "len": 5}], [["word=Vienna", "end"]]]
    >>> vectorizer = SequenceVectorizer()
    >>> rows = vectorizer.fit_transform(X)
    >>> [matrix.toarray().tolist() for matrix in rows]
    [[[0.0, 6.0, 1.0, 0.0], [0.0, 5.0, 0.0, 1.0]], [[1.0, 0.0, 1.0, 0.0]]]
    >>> vectorizer.get_feature_names_out().tolist()
    ['end', 'len', 'word=Vienna', 'word=waits']
    >>> SequenceVectorizer(min_freq=2).fit(X).get_feature_names_out().tolist()
    ['len', 'word=Vienna']
    """

    def __init__(self, vectorizer: Any = None, empty: bool = False, min_freq: int = 1) -> None:
        self.vectorizer = vectorizer
        self.empty = empty
        self.min_freq = min_freq

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
        self.vectorizer_ = inner = self._fresh()
        if type(inner) is DictVectorizer:
            tokens = _Tokens(X, self.empty, Names(None, inner.separator))
            _learn_columns(inner, tokens, self.min_freq)
        elif type(inner) is FeatureHasher:
            self._matrices(X, inner.fit_transform)
        else:
            inner.fit(_whole(X, self.empty)[0])
        return self

    def _fresh(self) -> Any:
        check_count("min_freq", self.min_freq)
        if self.vectorizer is None:
            return DictVectorizer()
        inner = cloned_transformer("vectorizer", self.vectorizer)
        if self.min_freq > 1 and type(inner) is not DictVectorizer:
            raise ValueError(
                f"min_freq is {self.min_freq}, expected 1 with {a_type(inner)}, whose "
                "features are not counted; use DictVectorizer"
            )
        return inner

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
        self.vectorizer_ = inner = self._fresh()
        if type(inner) is not DictVectorizer:
            return self._matrices(X, inner.fit_transform)
        tokens = _Tokens(X, self.empty, Names(None, inner.separator))
        columns = _learn_columns(inner, tokens, self.min_freq)
        tokens.numbering.renumber(columns)
        return tokens.matrices(inner)

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
        if "vectorizer_" not in self.__dict__:
            check_is_fitted(self)
        inner = self.vectorizer_
        if type(inner) is not DictVectorizer:
            return self._matrices(X, inner.transform)
        return _Tokens(X, self.empty, self._table(inner)).matrices(inner)

    def _table(self, inner: DictVectorizer) -> Names:
        """Return the table of the columns, made by the first call after ``fit`` or loading."""
        known = inner.vocabulary_, len(inner.vocabulary_), inner.separator
        kept = self.__dict__.get("_columns")
        if kept is None or kept[0] is not known[0] or kept[1:3] != known[1:]:
            self._columns = kept = (*known, Names(inner.vocabulary_, inner.separator))
        return kept[3]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_columns"}

    def _matrices(self, X: Iterable[Iterable[Any]], method: Callable) -> list[Any]:
        if type(self.vectorizer_) is FeatureHasher:
            return _Tokens(X, self.empty, Names()).hashed(self.vectorizer_, method)
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


def _learn_columns(inner: DictVectorizer, tokens: _Tokens, least: int) -> np.ndarray:
    """Fit a vectorizer to distinct names; return the column of each, -1 for rare ones."""
    names = tokens.table.names
    order: Any = range(len(names))
    if least > 1:
        counts = tokens.counts()
        order = np.flatnonzero(counts >= least).tolist()
        if not order and names:
            raise ValueError(
                f"min_freq is {least}, but no feature occurs more often than {counts.max()} times"
            )
    if inner.sort:
        order = sorted(order, key=names.__getitem__)
    _name_columns(inner, [names[j] for j in order])
    column = np.full(len(names), -1, np.int32)
    column[order] = np.arange(len(order))
    return column


def _name_columns(inner: DictVectorizer, names: list[str]) -> None:
    # Set the attributes of its fit(), which would process every feature of every item again.
    inner.feature_names_ = names
    inner.vocabulary_ = dict(zip(names, range(len(names))))


def feature_counts(X: Iterable[Iterable[Any]], empty: bool, separator: str) -> dict[str, int]:
    """Return how often each feature occurs.

    Parameters
    ----------
    X : iterable of sequences
    empty : bool
        Take sequences without items.
    separator : str
        Between a name and its text.

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> feature_counts([[["a", "b"], {"a": 2}]], False, "=")
    {'a': 2, 'b': 1}
    """
    tokens = _Tokens(X, empty, Names(None, separator))
    return dict(zip(tokens.table.names, tokens.counts().tolist()))


class _Tokens:
    """All items of all sequences: a number per feature, and the ends of items and sequences.

    The features that a table of fixed numbers does not have are left out.
    """

    def __init__(self, X: Iterable[Iterable[Any]], empty: bool, table: Names) -> None:
        self.table, self.numbering = table, Numbering(table)
        self.offsets = offsets = self.numbering.offsets
        for i, sequence in enumerate(_sequences(X)):
            self.numbering.add_items(sequence, i)
            if self.numbering.items == offsets[-1] and not empty:
                raise _no_items(sequence, i)
            self.numbering.end_sequence()
        if len(offsets) == 1:
            raise _no_sequences(X)

    def counts(self) -> np.ndarray:
        """The number of occurrences of each feature of the table."""
        return np.bincount(self.numbering.occurrences()[0], minlength=len(self.table.names))

    def matrices(self, inner: DictVectorizer) -> list[Any]:
        """The rows of all items, numbered by columns, split into sequences."""
        width = len(inner.vocabulary_)
        if self.numbering.sort_items() and inner.sparse:
            dtype, blocks = inner.dtype, self.numbering.blocks()
            if dtype is not np.float64:
                blocks = [(data.astype(dtype), ids, starts) for data, ids, starts in blocks]
            return [valid_csr(data, ids, starts, width, True) for data, ids, starts in blocks]
        ids, values = self.numbering.occurrences()
        arrays = values.astype(inner.dtype, copy=False), ids, self.numbering.starts()
        rows = sparse.csr_matrix(arrays, shape=(self.numbering.items, width))
        rows.sum_duplicates()
        return split_rows(rows if inner.sparse else rows.toarray(), self.offsets)

    def hashed(self, inner: FeatureHasher, method: Callable) -> list[Any]:
        """The rows of all items, the sums of the hashed features, split into sequences."""
        wrap: Callable = {
            "string": lambda name: [name],
            "pair": lambda name: [(name, 1)],
            "dict": lambda name: {name: 1},
        }[inner.input_type]
        names = self.table.names
        one = method([wrap(name) for name in names] or [wrap("")])
        ids, values = self.numbering.occurrences()
        data = (one.data[ids] * values).astype(one.dtype, copy=False)
        shape = self.numbering.items, inner.n_features
        starts = self.numbering.starts()
        rows = sparse.csr_matrix((data, one.indices[ids], starts), shape=shape)
        rows.sum_duplicates()
        return split_rows(rows, self.offsets)


def _no_items(sequence: Any, i: int) -> ValueError:
    return ValueError(
        f"X[{i}]: found an empty sequence; expected at least one item (empty=True lets it pass)"
        f"{_once(sequence)}"
    )


def _no_sequences(X: Any) -> ValueError:
    return ValueError(f"X: found no sequences; expected at least one{_once(X)}")


def _once(given: Any) -> str:
    return "; an iterator can be read only once: pass a list" if hasattr(given, "__next__") else ""


def _whole(X: Iterable[Iterable[Any]], empty: bool) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Every item as a dict, for transformers of whole items, and the ends of sequences."""
    items: list[dict[str, Any]] = []
    offsets = [0]
    checked = Numbering(Names())
    for i, sequence in enumerate(_sequences(X)):
        for t, item in enumerate(sequence):
            if isinstance(item, Mapping):
                items.append(dict(item))
                continue
            features: Any = item if isinstance(item, list | str | bytes) else list(item)
            checked.add_items([features], i, t)
            counted: dict[str, Any] = {}
            for feature in features:
                name, value = (feature, 1) if isinstance(feature, str | bytes) else feature
                name = name.decode() if isinstance(name, bytes) else name
                counted[name] = counted[name] + value if name in counted else value
            items.append(counted)
        if len(items) == offsets[-1] and not empty:
            raise _no_items(sequence, i)
        offsets.append(len(items))
    if len(offsets) == 1:
        raise _no_sequences(X)
    return items, np.array(offsets)


def _sequences(X: Any) -> Iterable[Any]:
    """The checked sequences of X."""
    if not _is_many(X):
        raise TypeError(f"X: found {show(X)}; expected a list of sequences of items")
    for i, sequence in enumerate(X):
        if not _is_many(sequence):
            rows = (
                "; of a data frame, its to_dict('records')" if hasattr(sequence, "columns") else ""
            )
            raise TypeError(
                f"X[{i}]: found {show(sequence)}; expected a sequence: a list of items, each "
                f"a dict or a list of strings{rows}"
            )
        yield sequence


def _is_many(given: Any) -> bool:
    # Checks of abstract classes take a tenth of transforming a sentence.
    return type(given) is list or (
        isinstance(given, Iterable)
        and not isinstance(given, str | bytes | Mapping)
        and not hasattr(given, "columns")  # a data frame iterates over names of columns
    )
