"""Segmentations: sequences cut into segments, with scores of their tokens, ends and lengths."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from structsolve.examples import labels, packing
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import pieces
from structsolve.plugins.semi_markov.labels import Segments, read_segments, write_tags
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure


class SemiMarkovStructure(Structure):
    """Sequences cut into segments of at most `max_length` tokens, each of one class.

    A segment's score is the sum of its tokens' scores for its class, a score of its first and of
    its last token, one of its length, and one of the pair of classes with the segment before it.

    Parameters
    ----------
    max_length : int, optional
        The longest segment.  By default that of the longest segment of the training data.
    outside : str or int, default="O"
        Class of tokens that no span covers: each is a segment of its own.

    Notes
    -----
    X is as for :class:`~structsolve.plugins.chain.ChainStructure`, without features of edges.  Y
    has for each sequence either a list of spans ``(start, end, class)``, where `end` is one past
    the last token, or its chunk tags (``["B-NP", "I-NP", "O"]``).  Predictions have the same form;
    tags are written in the scheme of training.

    Losses: "hamming" (tokens in a segment of a wrong class), "normalized-hamming", "span" (missing
    and spurious spans), "zero-one".

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X = [[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> Y = [[(0, 2, "name")], [(1, 2, "name")]]
    >>> model = StructuredSVM("semi-markov", alpha=0.01).fit(X, Y)
    >>> model.predict(X)
    [[(0, 2, 'name')], [(1, 2, 'name')]]
    >>> tags = [["B-name", "I-name", "O"], ["O", "B-name"]]
    >>> model = StructuredSVM("semi-markov", loss="span", alpha=0.01).fit(X, tags)
    >>> model.predict(X)[0].tolist()
    ['B-name', 'I-name', 'O']
    """

    name = "semi-markov"

    def __init__(self, max_length: int | None = None, outside: str | int = "O"):
        self.max_length = max_length
        self.outside = outside

    def check_params(self) -> None:
        """Refuse a longest length below 1."""
        length = self.max_length
        whole = isinstance(length, (int, np.integer)) and not isinstance(length, bool)
        if length is not None and not (whole and length >= 1):
            raise ValueError(f"max_length is {length!r}, expected an integer from 1 up, or None")

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[SemiMarkovSpace, Examples]:
        """Learn classes, the longest length and the form of labels, and pack the training data.

        See :meth:`structsolve.Structure.make_space`.
        """
        self.check_params()
        nodes, offsets = packing.stack_rows(X, compress=True)
        examples = Examples(offsets, nodes)
        segments = read_segments(Y, offsets, self.outside)
        longest = self.max_length or int((segments.ends - segments.begins).max())
        names = labels.learn_classes(segments.names, classes)
        space = SemiMarkovSpace(
            self, names, nodes.shape[1], fit_intercept, longest, segments.scheme
        )
        examples.labels = space.encode(segments, offsets)
        return space, examples

    def score_space(self, classes: Any = None, edge: bool = False) -> SemiMarkovSpace:
        """Return a space without features; see :meth:`Structure.score_space`.

        Parameters
        ----------
        classes : int or sequence
        edge : bool
            Not possible.
        """
        self.check_params()
        packing.no_edges(edge, self.name)
        if self.max_length is None:
            raise ValueError(
                "max_length is None, which means that of the training data; without data, give "
                "the structure its max_length"
            )
        names = labels.class_names(classes, self.name)
        return SemiMarkovSpace(self, names, 0, False, self.max_length, None)

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> SemiMarkovSpace:
        """Rebuild a space from its ``state()``."""
        sizes = state["n_features"], state["intercept"], state["longest"], state["scheme"]
        return SemiMarkovSpace(self, arrays["classes"], *sizes)

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random sequences, with gaps between their spans."""
        rng = np.random.default_rng(random_state)
        X, Y = [], []
        for _ in range(n):
            length = int(rng.integers(1, size + 1))
            X.append(rng.integers(-2, 3, (length, 2)).astype(float))
            cuts = [0, *(np.flatnonzero(rng.random(length - 1) < 0.6) + 1).tolist(), length]
            spans = zip(cuts, cuts[1:], rng.choice(["A", "B", "O"], len(cuts)).tolist())
            most = self.max_length or length
            Y.append([(a, min(b, a + most), c) for a, b, c in spans if c != "O"])
        if not any(Y):
            Y[-1] = [(0, 1, "A")]
        return X, Y


class SemiMarkovSpace(Space):
    """Segmentations over given classes and features.

    A label has a number for each token: c where a segment of class c begins, K + c where it goes
    on.

    Parameters
    ----------
    structure : SemiMarkovStructure
    classes : ndarray of shape (K,)
        Sorted.
    n_features : int
        Number of features of a token.
    intercept : bool
        Tokens get a constant feature.
    longest : int
        Tokens of the longest segment.
    scheme : str or None
        The scheme of tags, if labels are tags.
    """

    def __init__(
        self,
        structure: SemiMarkovStructure,
        classes: np.ndarray,
        n_features: int,
        intercept: bool,
        longest: int,
        scheme: str | None,
    ):
        K, pair = len(classes), ("class", "class")
        blocks = [
            Block("transition", "shared", (K, K), pair),
            Block("start", "shared", (K,), ("class",)),
            Block("end", "shared", (K,), ("class",)),
            Block("length", "shared", (longest, K), ("length", "class")),
            # Of any token of a segment, its first, and its last.
            Block("node", "node", (3, K), ("place", "class")),
        ]
        super().__init__(structure, WeightLayout(blocks, n_features, intercept=intercept))
        self.classes_, self.longest, self.scheme = classes, longest, scheme
        self.axis_names = {"length": np.arange(1, longest + 1)}
        same = isinstance(structure.outside, str) == (classes.dtype.kind == "U")
        known = np.flatnonzero(classes == structure.outside).tolist() if same else []
        #: Number of the class of tokens in no span; -1 if there are none.
        self.outside: int = (known or [-1])[0]

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        state, arrays = super().state()
        return {**state, "longest": self.longest, "scheme": self.scheme}, arrays

    def learned(self, X: Any, examples: Examples) -> int:
        """Return what the space has from these data, besides classes.

        Parameters
        ----------
        X : list
        examples : Examples

        Returns
        -------
        int
        """
        return self.longest

    def joined(self, learned: list[int], classes: Any = None) -> Space:
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
        state, arrays = self.state()
        names = arrays["classes"] if classes is None else classes
        longest = {"longest": max(learned)}
        return self.structure.space_from_state(state | longest, arrays | {"classes": names})

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Pack X and Y; see :meth:`structsolve.Space.pack`.

        ``unseen="extra"``, for scoring, accepts segments of any length, too.
        """
        nodes, offsets = packing.stack_rows(X, self.layout.n_features, compress=True)
        examples = Examples(offsets, nodes)
        if Y is not None:
            segments = read_segments(Y, offsets, self.structure.outside)
            examples.labels = self.encode(segments, offsets, unseen)
        return examples

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return sequences of given lengths, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of int
            Lengths.
        **topology
            None.
        """
        packing.no_topology(topology)
        return Examples(packing.size_offsets(sizes, "lengths"))

    def encode(self, segments: Segments, offsets: np.ndarray, unseen: str = "error") -> np.ndarray:
        """Return the numbers of all tokens.

        Parameters
        ----------
        segments : Segments
        offsets : ndarray of int64 of shape (n + 1,)
        unseen : {"error", "extra"}
            As for ``pack``; a segment of the extra class begins with ``2 * K``.

        Returns
        -------
        ndarray of int32

        Raises
        ------
        ValueError
            For unknown classes, and segments that are too long.
        """
        K, sizes = len(self.classes_), segments.ends - segments.begins
        extra = None if unseen == "error" else K
        first = np.searchsorted(segments.begins, offsets)
        states = labels.encode(segments.names, self.classes_, first, extra)
        if extra is None and (sizes > self.longest).any():
            k = int(np.argmax(sizes > self.longest))
            i = int(np.searchsorted(first, k, side="right")) - 1
            start = int(segments.begins[k] - offsets[i])
            span = (start, start + int(sizes[k]), segments.names[k].item())
            raise ValueError(
                f"example {i}: the segment {span} has {sizes[k]} tokens, and max_length is "
                f"{self.longest}; give the structure a larger max_length, or cut the segment"
            )
        codes = np.repeat(np.where(states < K, K + states, K), sizes).astype(np.int32)
        codes[segments.begins] = np.where(states < K, states, 2 * K)
        return codes

    def _first_fault(self, flat: np.ndarray, starts: np.ndarray) -> int | None:
        """Return the first token where encoded labels are no segmentation."""
        K = len(self.classes_)
        begins, cls = flat < K, flat % K
        opens = np.zeros(len(flat), bool)
        opens[starts] = True
        wrong = ~begins & opens
        wrong[1:] |= ~begins[1:] & (cls[1:] != cls[:-1])
        place = np.arange(len(flat))
        length = place - np.maximum.accumulate(np.where(begins | opens, place, 0))
        wrong |= length >= np.where(cls == self.outside, 1, self.longest)
        return int(np.argmax(wrong)) if wrong.any() else None

    def contains(self, label: np.ndarray, examples: Examples, i: int) -> bool:
        """Return whether an encoded label is a segmentation."""
        return self._first_fault(label, np.zeros(1, np.int64)) is None

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse encoded labels that are no segmentations."""
        v = self._first_fault(flat, examples.offsets[:-1])
        if v is not None:
            i = int(np.searchsorted(examples.offsets, v, side="right")) - 1
            K, start = len(self.classes_), examples.offsets[i]
            raise ValueError(
                f"example {i}, token {v - start}: found the state {flat[v]}, expected a segment to "
                f"begin (0 to {K - 1}), or {K} plus the class of the token before, for at most "
                f"{self.longest} tokens of a segment (1 outside of spans)"
            )

    def unpack(self, flat: np.ndarray, examples: Examples) -> list[Any]:
        """Return tags or lists of spans; see :meth:`structsolve.Space.unpack`."""
        if self.scheme is None:
            return super().unpack(flat, examples)
        starts = examples.offsets[:-1]
        tags = write_tags(flat, self.classes_, self.outside, starts, self.scheme)
        return pieces(tags, examples.offsets)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return the tags or spans of one label."""
        K = len(self.classes_)
        if self.scheme is not None:
            start = np.zeros(1, np.int64)
            return write_tags(label, self.classes_, self.outside, start, self.scheme)
        begins = np.flatnonzero(label < K)
        ends = np.append(begins[1:], len(label))
        names, states = self.classes_.tolist(), label[begins].tolist()
        spans = zip(begins.tolist(), ends.tolist(), states)
        return [(a, b, names[c]) for a, b, c in spans if c != self.outside]

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return scores or marginals of the classes of tokens.

        See :meth:`structsolve.Space.unpack_scores`.

        Returns
        -------
        list of ndarray of shape (tokens, K)
        """
        # The scores of any token of a segment come first, in rows that may be padded.
        rows = np.asarray(flat).reshape(int(examples.offsets[-1]), -1)
        return pieces(rows[:, : len(self.classes_)], examples.offsets)

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every segmentation of an example."""
        K = len(self.classes_)

        def every(n: int) -> list[list[int]]:
            if n == 0:
                return [[]]
            return [
                [c] + [K + c] * (size - 1) + rest
                for c in range(K)
                for size in range(1, min(n, 1 if c == self.outside else self.longest) + 1)
                for rest in every(n - size)
            ]

        return np.array(every(int(np.diff(examples.offsets)[i])), dtype=np.int32)

    def of_kind(self, operator: Any) -> Any:
        """Return a factory for an operator that knows the class outside of spans.

        Parameters
        ----------
        operator : type
            Takes the number of that class, and a layout.

        Returns
        -------
        callable
        """
        return partial(operator, self.outside)
