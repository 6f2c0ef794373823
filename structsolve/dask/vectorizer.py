"""Named features of partitions: one SequenceVectorizer for the names of all."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sklearn.base import clone
from sklearn.feature_extraction import DictVectorizer

from structsolve.utils.suggest import a_type

from ..features.vectorizer import SequenceVectorizer, feature_counts
from . import data
from .cluster import find_client, gathered


def fit_vectorizer(
    X: Any, vectorizer: SequenceVectorizer | None = None, client: Any = None
) -> SequenceVectorizer:
    """Return a vectorizer of the features of all partitions.

    Parameters
    ----------
    X : dask bag of sequences, or list of Delayed or Future
        Sequences as :meth:`structsolve.SequenceVectorizer.fit` takes them.
    vectorizer : SequenceVectorizer, optional
        Settings; ``FeatureHasher`` has no names to learn, and needs no fit over partitions.
    client : distributed.Client, optional
        By default the present one.

    Returns
    -------
    SequenceVectorizer
        Fitted; columns are sorted by name.

    Raises
    ------
    TypeError
        For a vectorizer whose features have no names.
    ValueError
        If no partition holds a sequence.

    Examples
    --------
    >>> import dask.bag as db                                         # doctest: +SKIP
    >>> from structsolve.dask import fit_vectorizer
    >>> sentences = db.from_sequence([[["a"]], [["b"]]], npartitions=2)  # doctest: +SKIP
    >>> fit_vectorizer(sentences).get_feature_names_out().tolist()    # doctest: +SKIP
    ['a', 'b']
    """
    import dask  # need not be installed

    vectorizer = SequenceVectorizer() if vectorizer is None else clone(vectorizer)
    inner = vectorizer._fresh()
    if not isinstance(inner, DictVectorizer):
        raise TypeError(
            f"vectorizer has {a_type(inner)}, expected a DictVectorizer: others have no "
            "names that partitions could share"
        )
    client = find_client(client)
    lazy = [dask.delayed(_names)(part, vectorizer) for part in data.partitions(X, "X")]
    counts: Counter[str] = Counter()
    for part in gathered(client, client.compute(lazy), "reading a partition"):
        counts.update(part)
    names = sorted(name for name, count in counts.items() if count >= vectorizer.min_freq)
    if not names:
        least = f" with {vectorizer.min_freq} equal features" * (vectorizer.min_freq > 1)
        raise ValueError(f"X: found no sequences{least} in any partition; expected at least one")
    inner.feature_names_ = names
    inner.vocabulary_ = {name: j for j, name in enumerate(names)}
    vectorizer.vectorizer_ = inner
    return vectorizer


def _names(part: Any, vectorizer: SequenceVectorizer) -> Counter[str]:
    """Return the names of the features of a partition and their numbers, on a worker."""
    sequences = list(part)
    if not sequences:
        return Counter()
    separator = vectorizer._fresh().separator
    return Counter(feature_counts(sequences, vectorizer.empty, separator))
