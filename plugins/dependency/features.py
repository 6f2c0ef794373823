"""Features of arcs from words and tags, as first-order parsers use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from structsolve.examples.given import check_listed
from structsolve.plugins.dependency._features import hashed_arcs
from structsolve.plugins.dependency.arcs import Arcs
from structsolve.utils.params import check_choice, check_count

# Numbers of coarse tags, sorted; the last one stands for tags unseen in training.
COARSE = 32
FIRST_TAG = 3


class ArcFeaturizer(TransformerMixin, BaseEstimator):
    """Hashed features of all arcs of tagged sentences.

    Columns are words and tags of head and modifier, alone and together, with direction and
    distance; the tags of their neighbours; the tags of the words in between.  An arc has some 30
    columns, all one.

    Parameters
    ----------
    n_bits : int, default=20
        The number of columns is ``2 ** n_bits``.
    tags : {"xpos", "upos"}, default="xpos"
        Tags of the treebank (universal tags if it has none), or universal tags.

    Attributes
    ----------
    coarse_ : list of str
        The universal tags of training, whose presence between head and modifier is a feature.

    Examples
    --------
    >>> from structsolve.plugins.dependency.conllu import ConlluSentence
    >>> from structsolve.plugins.dependency import ArcFeaturizer
    >>> sentence = ConlluSentence.of(["He", "ran", "home"], ["PRON", "VERB", "ADV"])
    >>> arcs = ArcFeaturizer(n_bits=16).fit_transform([sentence])
    >>> arcs.features.shape, len(arcs)
    ((9, 65536), 1)
    """

    def __init__(self, n_bits: int = 20, tags: str = "xpos"):
        self.n_bits = n_bits
        self.tags = tags

    def fit(self, X: Sequence[Any], y: Any = None) -> ArcFeaturizer:
        """Learn the set of universal tags.

        Parameters
        ----------
        X : list of ConlluSentence
        y : ignored

        Returns
        -------
        ArcFeaturizer
            Itself.

        Raises
        ------
        ValueError
            If a parameter or a sentence is invalid.
        """
        check_count("n_bits", self.n_bits, 30)
        check_choice("tags", self.tags, ("xpos", "upos"))
        tags = sorted({tag for sentence in self._checked(X) for tag in sentence.upos})
        self.coarse_ = tags[: COARSE - 1]
        return self

    def transform(self, X: Sequence[Any]) -> Arcs:
        """Return the features of all arcs of the sentences.

        Parameters
        ----------
        X : list of ConlluSentence

        Returns
        -------
        Arcs
        """
        from scipy import sparse  # heavy

        check_is_fitted(self, "coarse_")
        sentences = self._checked(X)
        sizes = np.array([len(s) for s in sentences], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        words = _numbers(w.lower() for s in sentences for w in s.forms)
        tags = _numbers(t for s in sentences for t in getattr(s, self.tags))
        number = {tag: k for k, tag in enumerate(self.coarse_)}
        coarse = np.array(
            [number.get(t, COARSE - 1) for s in sentences for t in s.upos], dtype=np.uint32
        )
        indices, indptr = hashed_arcs(words, tags, coarse, offsets, int(self.n_bits))
        ones = np.ones(len(indices), dtype=np.float32)
        matrix = sparse.csr_matrix(
            (ones, indices, indptr), shape=(len(indptr) - 1, 2**self.n_bits), copy=False
        )
        matrix.has_canonical_format = True
        return Arcs(matrix, sizes)

    def get_state(self) -> dict[str, Any]:
        """Return the state for :meth:`of_state`.

        Returns
        -------
        dict
            JSON-able.
        """
        return {"n_bits": self.n_bits, "tags": self.tags, "coarse": self.coarse_}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> ArcFeaturizer:
        """Return a fitted featurizer.

        Parameters
        ----------
        state : dict
            From :meth:`get_state`.

        Returns
        -------
        ArcFeaturizer
        """
        made = cls(state["n_bits"], state["tags"])
        made.coarse_ = list(state["coarse"])
        return made

    def _checked(self, X: Any) -> Sequence[Any]:
        check_listed(X, "a list of ConlluSentence", one="sentence")
        for i, sentence in enumerate(X):
            if not hasattr(sentence, "upos") or not len(sentence):
                raise ValueError(
                    f"X, example {i}: found {type(sentence).__name__}, expected a ConlluSentence "
                    "of at least one word, as read_conllu() gives"
                )
        return X


def _numbers(strings: Iterable[str]) -> np.ndarray:
    """Return a number of 32 bits for each string, the same in every run."""
    known: dict[str, int] = {}
    numbers = []
    for text in strings:
        number = known.get(text)
        if number is None:
            number = known[text] = crc32(text.encode("utf-8", "surrogatepass")) | FIRST_TAG << 1
        numbers.append(number)
    return np.array(numbers, dtype=np.uint32)
