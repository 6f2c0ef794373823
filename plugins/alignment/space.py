"""Alignments of two sequences: pairs of an item of the first and its partner, in order."""

from __future__ import annotations

from functools import partial
from itertools import product
from reprlib import repr as brief
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import pieces
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.structure.base import Space, Structure
from structsolve.utils.params import check_choice

KINDS = ("edit", "many-to-one", "ctc")


class AlignmentStructure(Structure):
    """Monotone alignments: each item of a first sequence has a partner in a second, in order.

    Parameters
    ----------
    kind : {"edit", "many-to-one", "ctc"}
        "edit": items pair up one to one; those of either sequence may be left alone (deleted,
        inserted), at a learned score each.  "many-to-one": every item has a partner and every
        partner at least one item, as states of a recording that are passed in order.  "ctc": as
        "many-to-one", but items may be blank, at a learned score, and are blank between two runs
        of equal partners (connectionist temporal classification).

    Notes
    -----
    X is a list with one array of shape ``(n, m, n_features)`` per example: features of each pair of
    an item and a partner.  For "ctc", an element may be a pair of that and the m symbols of the
    second sequence, of which equal neighbours need a blank in between.  Y has for each example n
    integers: the partner of each item from 0, and -1 where it has none.

    Losses: "hamming" (items with a wrong partner), "normalized-hamming", "zero-one".

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> def features(a, b):
    ...     return np.array([[[float(x == y), float(x != y)] for y in b] for x in a])
    >>> X = [features("abc", "ac"), features("ab", "bb")]
    >>> model = StructuredSVM("alignment", alpha=0.01).fit(X, [[0, -1, 1], [-1, 1]])
    >>> model.predict(X)[0].tolist()
    [0, -1, 1]
    """

    name = "alignment"
    layouts = {"kind": KINDS}

    def __init__(self, kind: str = "edit"):
        self.kind = kind

    def check_params(self) -> None:
        """Refuse unknown kinds."""
        check_choice("kind", self.kind, KINDS)

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[AlignmentSpace, Examples]:
        """Learn the space from training data, and pack these.

        See :meth:`structsolve.Structure.make_space`. ``classes`` has to be None.
        """
        self.score_space(classes)
        tables, sizes, symbols = _read(X)
        nodes, _ = packing.stack_rows(tables)
        space = AlignmentSpace(self, nodes.shape[1])
        return space, space._examples(nodes, sizes, symbols, Y)

    def score_space(self, classes: Any = None, edge: bool = False) -> AlignmentSpace:
        """Return a space without features: one score per pair."""
        self.check_params()
        packing.no_edges(edge, self.name)
        if classes is not None:
            raise ValueError("classes: alignments have none")
        return AlignmentSpace(self, 0)

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> AlignmentSpace:
        """Rebuild a space from what its ``state()`` returned."""
        return AlignmentSpace(self, state["n_features"])

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random examples with some alignment."""
        self.check_params()
        rng = np.random.default_rng(random_state)
        X, Y = [], []
        for _ in range(n):
            items = int(rng.integers(1, size + 1))
            others = int(rng.integers(1, size + 1 if self.kind == "edit" else items + 1))
            X.append(rng.integers(-2, 3, (items, others, 2)).astype(float))
            Y.append(self._draw(items, others, rng) - 1)
        return X, Y

    def _draw(self, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
        """Return an encoded alignment of n items to m partners; every one may come."""
        if self.kind == "edit":
            label = np.zeros(n, dtype=np.int32)
            pairs = int(rng.integers(min(n, m) + 1))
            label[np.sort(rng.choice(n, pairs, replace=False))] = 1 + np.sort(
                rng.choice(m, pairs, replace=False)
            )
            return label
        # One item for each partner; the others stay with one, or are blank before, between, behind.
        partners = np.arange(1, m + 1, dtype=np.int32)
        runs = (
            partners
            if self.kind == "many-to-one"
            else np.insert(np.zeros(m + 1, np.int32), slice(1, None), partners)
        )
        lengths = (runs > 0) + np.bincount(rng.integers(len(runs), size=n - m), minlength=len(runs))
        return np.repeat(runs, lengths)


def _check_symbols(names: Any, m: int, where: str) -> None:
    many = len(names) if hasattr(names, "__len__") else repr(names)
    if many != m:
        raise ValueError(f"{where}: found {many} symbols, expected {m}")


def _read(X: Any) -> tuple[list[np.ndarray], np.ndarray, list[Any]]:
    """Return rows of pairs, (items, partners), and the partners' symbols or None, by example."""
    if isinstance(X, (str, dict)) or not hasattr(X, "__len__") or not len(X):
        raise ValueError("X: expected a list with an array (n, m, n_features) for each alignment")
    tables, sizes, symbols = [], [], []
    for i, x in enumerate(X):
        named = isinstance(x, tuple)
        if named and len(x) != 2:
            raise ValueError(
                f"X, example {i}: found a tuple of {len(x)}, expected (features, symbols)"
            )
        try:
            table = np.asarray(x[0] if named else x)
        except ValueError:  # ragged
            table = np.array(None)
        if table.ndim != 3:
            raise ValueError(
                f"X, example {i}: found {table.ndim} dimensions, expected features of shape (n, m, "
                "n_features): a row for each pair"
            )
        n, m, _ = table.shape
        if n < 1 or m < 1:
            raise ValueError(
                f"X, example {i}: found sequences of {n} and {m} items, expected at least one in "
                "each; leave empty ones out"
            )
        if named:
            _check_symbols(x[1], m, f"X, example {i}")
        symbols.append(list(x[1]) if named else None)
        tables.append(table.reshape(n * m, -1))
        sizes.append((n, m))
    return tables, np.array(sizes, np.int64), symbols


class AlignmentSpace(Space):
    """A row of the block "pair" for each pair, and the scores of what is left alone.

    A label has for each item its partner, from 1, or 0.

    Parameters
    ----------
    structure : AlignmentStructure
    n_features : int
        Number of features of a pair.
    """

    structure: AlignmentStructure

    def __init__(self, structure: AlignmentStructure, n_features: int):
        alone = {"edit": 2, "ctc": 1, "many-to-one": 0}[structure.kind]
        blocks = [Block("gap", "shared", (alone,), ("sequence",))] if alone else []
        blocks.append(Block("node", "node", (1,), ("score",)))
        super().__init__(structure, WeightLayout(blocks, n_features))

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Check and stack pairs and alignments; see :meth:`structsolve.Space.pack`."""
        tables, sizes, symbols = _read(X)
        nodes, _ = packing.stack_rows(tables, self.layout.n_features)
        return self._examples(nodes, sizes, symbols, Y)

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return pairs of sequences of given lengths, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of (int, int)
            Items of both sequences.
        **topology
            ``symbols``, for "ctc": a list with those of each second sequence.
        """
        packing.no_topology({*topology} - {"symbols"})
        given = packing.size_pairs(sizes, "lengths of both sequences")
        symbols = topology.get("symbols")
        symbols = [None] * len(given) if symbols is None else symbols
        if not hasattr(symbols, "__len__") or len(symbols) != len(given):
            many = len(symbols) if hasattr(symbols, "__len__") else repr(symbols)
            raise ValueError(
                f"symbols: found {many}, expected a list with those of each of {len(given)} "
                "examples"
            )
        for i, (names, (_, m)) in enumerate(zip(symbols, given.tolist())):
            if names is not None:
                _check_symbols(names, m, f"symbols, example {i}")
        return self._examples(None, given, [*symbols], None)

    def _examples(self, nodes: Any, sizes: np.ndarray, symbols: list[Any], Y: Any) -> Examples:
        """Combine rows of pairs and alignments."""
        ends = np.cumsum(np.vstack([[0, 0, 0], np.column_stack([sizes.prod(1), sizes])]), axis=0)
        offsets, firsts, seconds = ends.T.copy()
        repeats = np.zeros(int(seconds[-1]), np.int8)
        for i, names in enumerate(symbols):
            if names is not None:
                if self.structure.kind != "ctc":
                    raise ValueError(f"X, example {i}: found symbols, which only kind='ctc' takes")
                equal = [a == b for a, b in zip(names, names[1:])]
                repeats[seconds[i] + 1 : seconds[i + 1]] = equal
        examples = Examples(offsets, nodes, label_offsets=firsts)
        examples.topology = {"seconds": seconds, "repeats": repeats}
        # A resumed run must have the same grids; features do not determine them.
        examples.topology["identity"] = (sizes.tobytes() + repeats.tobytes()).hex()
        self._check_sizes(sizes, repeats, seconds)
        if Y is not None:
            examples.labels = self._encode(Y, sizes, firsts)
            self.check_labels(examples.labels, examples)
        return examples

    def _check_sizes(self, sizes: np.ndarray, repeats: np.ndarray, seconds: np.ndarray) -> None:
        """Refuse sequences without any alignment."""
        if self.structure.kind == "edit":
            return
        needed = sizes[:, 1] + np.diff(np.concatenate([[0], np.cumsum(repeats)])[seconds])
        if (sizes[:, 0] < needed).any():
            i = int(np.argmax(sizes[:, 0] < needed))
            raise ValueError(
                f"example {i}: {sizes[i, 0]} items cannot pass {sizes[i, 1]} partners in order, "
                f"expected at least {needed[i]} items; or take kind='edit'"
            )

    def _encode(self, Y: Any, sizes: np.ndarray, firsts: np.ndarray) -> np.ndarray:
        if isinstance(Y, (str, dict)) or not hasattr(Y, "__len__") or len(Y) != len(sizes):
            raise ValueError(f"y: expected a list of {len(sizes)} alignments, one for each x")
        codes = np.zeros(int(firsts[-1]), np.int32)
        for i, (y, (n, m)) in enumerate(zip(Y, sizes.tolist())):
            given = np.asarray(y)
            if given.shape != (n,) or given.dtype.kind not in "iu":
                raise ValueError(
                    f"example {i}: found {given.dtype} of shape {given.shape}, expected {n} "
                    "integers: the partner of each item, -1 for none"
                )
            if (wrong := (given < -1) | (given >= m)).any():
                k = int(wrong.argmax())
                raise ValueError(
                    f"example {i}, item {k}: found the partner {given[k]}, expected 0 to {m - 1}, "
                    "or -1"
                )
            codes[firsts[i] : firsts[i + 1]] = given
        return codes + 1  # not in a label's own type: 255 + 1 is 0 in uint8

    def sizes_of(self, examples: Examples, i: int) -> tuple[int, int, np.ndarray]:
        """Return the sizes of an example, and which partners equal the one before.

        Parameters
        ----------
        examples : Examples
        i : int

        Returns
        -------
        items, partners : int
        repeats : ndarray of int8
        """
        first, last = examples.topology["seconds"][i : i + 2].tolist()
        items = int(np.diff(examples.label_offsets)[i])
        return items, last - first, examples.topology["repeats"][first:last]

    def contains(self, label: np.ndarray, examples: Examples, i: int) -> bool:
        """Return whether partners follow one another as the kind says."""
        kind = self.structure.kind
        _, m, repeats = self.sizes_of(examples, i)
        last, blank = 0, False
        for j in label.tolist():
            if j == 0:
                if kind == "many-to-one":
                    return False
            elif kind == "edit":
                if not last < j <= m:
                    return False
                last = j
            elif j == last + 1 <= m:
                if last and not blank and repeats[j - 1]:
                    return False
                last = j
            elif j != last or blank:
                return False
            blank = j == 0
        return kind == "edit" or last == m

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse partners that cross, leave one out or come back."""
        rules = {
            "edit": "rising partners: pairs that do not cross",
            "many-to-one": "every partner in order, for one item or more in a row",
            "ctc": "every partner in order, for one item or more in a row, blank between equals",
        }
        for i, label in enumerate(pieces(flat, examples.label_offsets)):
            if not self.contains(label, examples, i):
                raise ValueError(
                    f"example {i}: found partners {brief((label - 1).tolist())}, expected "
                    f"{rules[self.structure.kind]}"
                )

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> np.ndarray:
        """Return the partner of each item, -1 for none."""
        return label.astype(np.int64) - 1

    def unpack_scores(self, flat: np.ndarray, examples: Examples) -> list[np.ndarray]:
        """Return scores or marginals of pairs as a table per example."""
        tables = pieces(np.asarray(flat).reshape(-1), examples.offsets)
        return [x.reshape(self.sizes_of(examples, i)[:2]) for i, x in enumerate(tables)]

    def enumerate_labels(self, examples: Examples, i: int) -> np.ndarray:
        """Return every alignment of an example."""
        n, m, _ = self.sizes_of(examples, i)
        every = np.array([*product(range(m + 1), repeat=n)], dtype=np.int32)
        return every[[self.contains(label, examples, i) for label in every]]

    def of_kind(self, operator: Any) -> Any:
        """Return a factory for an operator on alignments of this kind.

        Parameters
        ----------
        operator : type
            Takes the kind and a layout.

        Returns
        -------
        callable
        """
        return partial(operator, str(self.structure.kind))
