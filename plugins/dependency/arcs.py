"""Candidate arcs of sentences and their features, as users give them; checks of heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import labels
from structsolve.examples.given import check_listed, is_sparse
from structsolve.examples.packed import Examples
from structsolve.examples.sentences import SentenceRows
from structsolve.part_layout import PartLayout
from structsolve.plugins.dependency._oracle import DependencyOracle
from structsolve.plugins.dependency._shape import first_fault
from structsolve.potentials.weight_layout import Block
from structsolve.structure.calls import argmax
from structsolve.utils.arrays import real_array


class Arcs(SentenceRows):
    """Features of the candidate arcs of one sentence, or of several, stacked.

    Parameters
    ----------
    features : array or scipy.sparse matrix of shape (arcs, n_features)
        One row per arc; the arcs of all sentences one after the other.
    n_words : int or sequence of int
        Words of the sentence, or of each of them, at least 1.
    heads, modifiers : sequence of int, optional
        Head (0: the root, 1: the first word) and modifier (1: the first word) of each arc, in any
        order within a sentence.  By default every word has all others and the root as candidate
        heads, n rows for each of n words: those of word 1, by rising head, then those of word 2.
    n_arcs : sequence of int, optional
        Rows of each sentence; needed with ``heads`` of several sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.dependency import Arcs
    >>> all_arcs = Arcs(np.eye(4), n_words=2)
    >>> list(zip(all_arcs.heads.tolist(), all_arcs.modifiers.tolist()))
    [(0, 1), (2, 1), (0, 2), (1, 2)]
    >>> Arcs(np.eye(2), n_words=2, heads=[0, 1], modifiers=[1, 2]).complete
    False
    """

    def __init__(
        self, features: Any, n_words: Any, heads: Any = None, modifiers: Any = None, n_arcs=None
    ):
        super().__init__(n_words)
        words = self.n_words
        if is_sparse(features):
            features = features.tocsr()
        else:
            features = np.asarray(features)
            if features.dtype.kind == "c":
                raise ValueError("features: Complex data not supported, expected real features")
            if features.ndim != 2:
                raise ValueError(
                    f"features has {features.ndim} dimensions, expected one row for each arc"
                )
        self.features, self.complete = features, heads is None
        if (heads is None) != (modifiers is None):
            raise ValueError("heads and modifiers: expected both or neither")
        if self.complete:
            counts = words * words
        elif n_arcs is None and words.size == 1:
            counts = np.array([features.shape[0]], dtype=np.int64)
        else:
            counts = np.asarray(n_arcs)
            if counts.shape != words.shape or counts.dtype.kind not in "iu" or counts.min() < 1:
                raise ValueError(
                    f"n_arcs is {n_arcs!r}, expected the number of arcs, at least 1, of each of "
                    f"{words.size} sentences"
                )
        self.offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if features.shape[0] != self.offsets[-1]:
            raise ValueError(
                f"features has {features.shape[0]} rows, expected {self.offsets[-1]}: "
                + ("n rows for each of the n words of a sentence" if self.complete else "n_arcs")
            )
        if not self.complete:
            self._sort(heads, modifiers)

    def _sort(self, heads: Any, modifiers: Any) -> None:
        """Check given arcs and sort them by sentence, modifier and head."""
        checked = []
        for name, values in (("heads", heads), ("modifiers", modifiers)):
            values = np.asarray(values)
            if values.shape != (self.offsets[-1],) or values.dtype.kind not in "iu":
                raise ValueError(
                    f"{name}: found shape {values.shape} and dtype {values.dtype}, expected "
                    f"{self.offsets[-1]} integers, one for each row of features"
                )
            checked.append(values.astype(np.int64))
        head, modifier = checked
        counts = np.diff(self.offsets)
        sentence = np.repeat(np.arange(len(counts)), counts)
        limit = self.n_words[sentence]
        wrong = (head < 0) | (head > limit) | (modifier < 1) | (modifier > limit)
        wrong |= head == modifier
        if wrong.any():
            a = int(np.argmax(wrong))
            i = sentence[a]
            raise ValueError(
                f"example {i}, arc {a - self.offsets[i]}: found head {head[a]} and modifier "
                f"{modifier[a]}, expected a head from 0 to {limit[a]} and another modifier from "
                f"1 to {limit[a]}"
            )
        first = np.concatenate([[0], np.cumsum(self.n_words)])[:-1]
        word = first[sentence] + modifier - 1
        order = np.lexsort((head, word))
        if (order != np.arange(len(order))).any():
            head, word = head[order], word[order]
            self.features = self.features[order]
        twice = (np.diff(head) == 0) & (np.diff(word) == 0)
        if twice.any():
            a = int(np.argmax(twice))
            i = int(sentence[a])
            raise ValueError(
                f"example {i}: the arc from {head[a]} to {word[a] - first[i] + 1} is given "
                "twice, expected distinct arcs"
            )
        total = int(self.n_words.sum())
        counts = np.bincount(word, minlength=total)
        if not counts.all():
            row = int(np.argmin(counts))
            i = int(np.searchsorted(first, row, side="right")) - 1
            raise ValueError(
                f"example {i}, word {row - first[i] + 1}: found no arc to it, expected at least "
                "one candidate head for every word"
            )
        self._heads = head.astype(np.int32)
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def heads(self) -> np.ndarray:
        """Head of each arc."""
        if not self.complete:
            return self._heads
        pieces = []
        for n in self.n_words.tolist():
            square = np.broadcast_to(np.arange(n + 1), (n, n + 1))
            pieces.append(square[square != np.arange(1, n + 1)[:, None]])
        return np.concatenate(pieces).astype(np.int32)

    @property
    def modifiers(self) -> np.ndarray:
        """Modifier of each arc."""
        counts = np.diff(self.starts) if not self.complete else np.repeat(*[self.n_words] * 2)
        numbers = np.arange(1, self.n_words.sum() + 1)
        numbers -= np.repeat(self.word_offsets[:-1], self.n_words)
        return np.repeat(numbers, counts).astype(np.int32)

    @property
    def word_offsets(self) -> np.ndarray:
        """First word of each sentence."""
        return np.concatenate([[0], np.cumsum(self.n_words)]).astype(np.int64)

    def __getitem__(self, i: Any) -> Arcs:
        rows, arcs = self.rows_of(i)
        features, n_words = self.features[arcs], self.n_words[rows]
        if self.complete:
            return Arcs(features, n_words)
        heads, modifiers = self.heads[arcs], self.modifiers[arcs]
        return Arcs(features, n_words, heads, modifiers, np.diff(self.offsets)[rows])


def _stack(X: list[Arcs]) -> Arcs:
    """Return the sentences of several objects as one."""
    from scipy import sparse  # heavy

    for i, x in enumerate(X):
        if x.features.shape[1] != X[0].features.shape[1]:
            raise ValueError(
                f"X, example {i}: found {x.features.shape[1]} features, expected "
                f"{X[0].features.shape[1]} as in the first example"
            )
    if any(is_sparse(x.features) for x in X):
        features = sparse.vstack([sparse.csr_matrix(x.features) for x in X], format="csr")
    else:
        features = np.concatenate([x.features for x in X])
    n_words = np.concatenate([x.n_words for x in X])
    if all(x.complete for x in X):
        return Arcs(features, n_words)
    return Arcs(
        features,
        n_words,
        np.concatenate([x.heads for x in X]),
        np.concatenate([x.modifiers for x in X]),
        np.concatenate([np.diff(x.offsets) for x in X]),
    )


def _of_table(table: Any, i: int) -> Arcs:
    """Return the arcs of a table [head, modifier - 1] of features; NaN rows are no candidates."""
    table = real_array(table, f"X, example {i}", single=True)
    if table.ndim != 3 or table.shape[1] < 1 or table.shape[0] != table.shape[1] + 1:
        raise ValueError(
            f"X, example {i}: found shape {table.shape}, expected (n + 1, n, n_features): a row "
            "for the root and for each word as head, a column for each word as modifier; or Arcs"
        )
    if table.shape[2] < 1:
        raise ValueError(f"X, example {i}: found 0 features of an arc, expected some")
    n = table.shape[1]
    modifiers, heads = np.nonzero(~np.eye(n + 1, dtype=bool)[1:])
    rows = table[heads, modifiers]
    barred = np.isnan(rows).all(axis=1)
    if not barred.any():
        return Arcs(rows, n)
    if barred.all():
        raise ValueError(f"X, example {i}: Input contains NaN only, expected some candidate arcs")
    kept = ~barred
    try:
        return Arcs(rows[kept], n, heads[kept], modifiers[kept] + 1)
    except ValueError as error:
        raise ValueError(f"X, {str(error).replace('example 0', f'example {i}', 1)}") from None


def stack_arcs(X: Any, n_features: int | None = None) -> Arcs:
    """Return the checked candidate arcs of all sentences of X, with features ready to pack.

    Parameters
    ----------
    X : Arcs, or list with an Arcs or an array of shape (n + 1, n, n_features) per sentence
    n_features : int, optional
        The number in training.

    Returns
    -------
    Arcs

    Raises
    ------
    ValueError
        The message names the example.
    """
    if isinstance(X, Arcs):
        arcs = X
    else:
        expected = "Arcs, or a list with an array of shape (n + 1, n, n_features) for each sentence"
        check_listed(X, f"{expected} of n words", one="sentence")
        pieces = [x if isinstance(x, Arcs) else _of_table(x, i) for i, x in enumerate(X)]
        for i, piece in enumerate(pieces):
            if len(piece) != 1:
                raise ValueError(
                    f"X, example {i}: found Arcs of {len(piece)} sentences, expected one in each "
                    "element of a list; pass Arcs of several sentences alone"
                )
        arcs = _stack(pieces)
    arcs.check_width(n_features, "an arc")
    return arcs


def check_heads(
    Y: Any, word_offsets: np.ndarray, single_root: bool, projective: bool
) -> np.ndarray:
    """Return the heads of all words as int32 after checking that they are trees.

    Parameters
    ----------
    Y : list of sequences of int
        The head of every word of a sentence: 0 the root, 1 the first word.
    word_offsets : ndarray of int64
    single_root, projective : bool
        The kind of trees allowed.

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        The message names the example and the word.
    """
    flat = labels.flatten(Y, word_offsets)
    if flat.dtype.kind not in "iuf":
        raise ValueError(f"y: found dtype {flat.dtype}, expected heads, numbers from 0, the root")
    return check_trees(flat, word_offsets, single_root, projective)


# What users give as a head with its relation; records of arrays have a length.
_PAIR: Any = (tuple, list, np.void)


def split_relations(Y: Any) -> tuple[Any, Any]:
    """Return heads and relations of labelled trees; relations are None if there are none.

    Parameters
    ----------
    Y : list
        For each sentence heads, or pairs (head, relation), or an array with these two fields.

    Returns
    -------
    heads, relations : list of sequences
        One per sentence.

    Raises
    ------
    ValueError
        If some arcs have a relation and others none; the message names the example and the word.
    """
    if isinstance(Y, (str, bytes, dict)) or not hasattr(Y, "__len__"):
        return Y, None  # refused by the check of heads
    first = next((one for y in Y if hasattr(y, "__iter__") for one in y), None)
    if not (isinstance(first, _PAIR) and len(first) == 2):
        return Y, None
    heads, relations = [], []
    for i, y in enumerate(Y):
        if getattr(getattr(y, "dtype", None), "names", None) == ("head", "relation"):
            heads.append(y["head"])
            relations.append(y["relation"])
            continue
        pairs = list(y) if hasattr(y, "__iter__") else [y]
        for m, pair in enumerate(pairs):
            whole = isinstance(pair, _PAIR) and len(pair) == 2
            if not whole or pair[1] is None:
                raise ValueError(
                    f"example {i}, word {m + 1}: found {pair!r}, expected a pair (head, relation): "
                    "every arc needs its relation"
                )
        heads.append([pair[0] for pair in pairs])
        relations.append([pair[1] for pair in pairs])
    return heads, relations


def as_pairs(heads: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """Return heads and relations as an array with the fields "head" and "relation".

    Parameters
    ----------
    heads, relations : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    pairs = np.empty(len(heads), [("head", np.int32), ("relation", relations.dtype)])
    pairs["head"], pairs["relation"] = heads, relations
    return pairs


def check_trees(
    flat: np.ndarray, word_offsets: np.ndarray, single_root: bool, projective: bool
) -> np.ndarray:
    """Return the heads of all words as int32 after checking that they are trees.

    Parameters
    ----------
    flat : ndarray of numbers
        Heads of all sentences, one after the other.
    word_offsets, single_root, projective
        See :func:`check_heads`.

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        The message names the example and the word.
    """
    heads = flat
    if flat.dtype != np.int32:
        # A number beyond 32 bits, or with a fraction, is no head.
        with np.errstate(invalid="ignore"):
            heads = flat.astype(np.int32)
        heads[heads != flat] = -1
    fault = first_fault(np.ascontiguousarray(heads), word_offsets, single_root, projective)
    if fault is None:
        return heads
    i, word, kind = fault
    head = flat[word_offsets[i] + word]
    if kind == "unknown":
        raise ValueError(
            f"example {i}, word {word + 1}: found head {head}, expected 0 (the root) to "
            f"{word_offsets[i + 1] - word_offsets[i]}; words count from 1"
        )
    if kind == "cycle":
        what = f"its heads lead back to it (head {head})"
        hint = "a tree, whose words all lead to the root, 0"
    elif kind == "roots":
        what, hint = "it is a second child of the root", "one: give single_root=False"
    else:
        what = f"the arc from its head {head} crosses another"
        hint = "a projective tree: give projective=False, or use projectivize()"
    raise ValueError(f"example {i}, word {word + 1}: {what}, expected {hint}")


def projectivize(heads: Any, single_root: bool = False) -> np.ndarray:
    """Return the projective tree that keeps most heads of a tree.

    Parameters
    ----------
    heads : sequence of int
        The head of every word, 0 the root.
    single_root : bool, default=False
        Require one child of the root, if the tree has one.

    Returns
    -------
    ndarray of int32 of shape (n,)

    Raises
    ------
    ValueError
        If the heads are not a tree.

    Examples
    --------
    >>> from structsolve.plugins.dependency import projectivize
    >>> projectivize([3, 4, 0, 3]).tolist()      # the arcs of words 1 and 2 cross
    [3, 3, 0, 3]
    """
    n = len(heads)
    offsets = np.array([0, n], dtype=np.int64)
    flat = check_heads([heads], offsets, False, False)
    scores = np.zeros((n, n + 1))
    scores[np.arange(n), flat] = 1
    # Ties go to a tree whose new heads are close to the heads of the old ones.
    for m in range(n):
        head, worth = flat[m], 0.5 / (n + 1)
        while head > 0:
            head = flat[head - 1]
            worth /= 2
            scores[m, head] = max(scores[m, head], worth)
    theta = scores[~np.eye(n + 1, dtype=bool)[1:]]
    every_arc = Examples(np.array([0, n * n], dtype=np.int64), label_offsets=offsets)
    layout = PartLayout([Block("arc", "node", (1,))], every_arc)
    return argmax(DependencyOracle(True, single_root, layout), 0, theta)[0]
