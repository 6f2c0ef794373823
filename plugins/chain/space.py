"""Chains: label sequences with node scores, transitions, start and end scores.

Compiled modules are imported where operators are made; listing structures imports none.
"""

from __future__ import annotations

from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import pieces
from structsolve.plugins.chain.tag_schemes import RULES, forbidden_pairs
from structsolve.structure.base import inherits
from structsolve.structure.labelings import LabelingSpace, LabelingStructure
from structsolve.utils.params import parameters

PAIR = "(label, next label)"


class ChainSpace(LabelingSpace):
    """Chains over given classes and features.

    Parameters
    ----------
    structure : ChainStructure
    classes : ndarray of shape (K,)
        Sorted.
    n_features : int
        Number of features of a node.
    n_edge_features : int or None
        None: edges have no features.
    intercept : bool
        Nodes get a constant feature.
    """

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return masks of scores that forbid labels and pairs of labels.

        Parameters
        ----------
        examples : Examples
        allowed : list, optional
            Per example a list with the allowed labels of each node; None for all.
        forbidden : str or list, optional
            Pairs (label, next label), None for the outside of the sequence (before the first, after
            the last); or the name of a scheme of chunk tags, as for :class:`ChainStructure`.

        Returns
        -------
        dict of str to ndarray
            0 and -inf: of shape (nodes, K) for "node", of shape (K, K) for "transition".

        Raises
        ------
        ValueError
            For unknown labels, and for pairs where there are no transitions.
        """
        pairs: Any = None
        ends: list[Any] = []
        if forbidden is not None:
            pairs, ends = _pairs_and_ends(self.classes_.tolist(), forbidden)
        masks = self.transition_masks(examples, allowed, pairs or None, PAIR)
        if ends:
            nodes = masks.setdefault("node", np.zeros((examples.offsets[-1], len(self.classes_))))
            first, last = _end_masks(self.classes_.tolist(), ends)
            filled = np.diff(examples.offsets) > 0
            nodes[examples.offsets[:-1][filled]] += first
            nodes[examples.offsets[1:][filled] - 1] += last
        return masks

    @cached_property
    def forbidden(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Masks (0 and -inf) of pairs, first and last labels, where the structure forbids some."""
        if self.structure.forbidden is None:
            return None
        pairs, ends = _pairs_and_ends(self.classes_.tolist(), self.structure.forbidden)
        # Labels unseen in training, as in a fold of a cross-validation, occur nowhere.
        known = {None, *self.classes_.tolist()}
        left = [[p for p in some if _knows(p, known)] for some in (pairs, ends)]
        if any(left):
            pairs, ends = left
        table = self.transition_masks(Examples(np.zeros(1, np.int64)), None, pairs, PAIR)[
            "transition"
        ]
        return table, *_end_masks(self.classes_.tolist(), ends)

    @cached_property
    def free_nodes(self) -> bool:
        """Whether any sequence of labels is allowed."""
        own = inherits(self, ChainSpace, "enumerate_labels", "contains")
        return own and self.structure.forbidden is None

    @property
    def plain_rows(self) -> bool:  # type: ignore[override]
        """Whether examples are matrices, and no subclass reads them in another way."""
        own = inherits(self, ChainSpace, "pack", "stack", "unpack")
        own = own and inherits(self.structure, ChainStructure, "stack")
        return own and self.layout.edge is None

    def contains(self, label: np.ndarray, examples: Examples, i: int) -> bool:
        """Return whether an encoded label has no forbidden neighbours."""
        if self.forbidden is None or not len(label):
            return True
        pairs, first, last = self.forbidden
        return not pairs[label[:-1], label[1:]].any() and not first[label[0]] + last[label[-1]]

    def check_labels(self, flat: np.ndarray, examples: Examples) -> None:
        """Refuse true labels with forbidden neighbours."""
        if self.forbidden is None:
            return
        pairs, first, last = self.forbidden
        names = [*self.classes_.tolist(), None]
        for i, label in enumerate(pieces(flat, examples.label_offsets)):
            wrong = np.concatenate(
                [first[label[:1]], pairs[label[:-1], label[1:]], last[label[-1:]]]
            )
            if wrong.any():
                v = int(np.flatnonzero(wrong)[0])
                path = [-1, *label.tolist(), -1]
                raise ValueError(
                    f"example {i}: found {names[path[v]]!r} before {names[path[v + 1]]!r} at node "
                    f"{max(v - 1, 0)}, which forbidden={self.structure.forbidden!r} does not "
                    "allow (None: what is beside the sequence); correct the labels, or allow it"
                )

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return chains of given lengths, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of int
            Lengths.
        **topology
            None.
        """
        packing.no_topology(topology)
        least = 0 if self.structure.empty else 1
        examples = Examples(packing.size_offsets(sizes, "lengths", least))
        if self.layout.edge is not None:
            edges = np.maximum(np.diff(examples.offsets) - 1, 0)
            examples.edge_offsets = np.concatenate([[0], np.cumsum(edges)])
        return examples

    def device_operations(self) -> Any:
        """Return operations of torch, if no labels are forbidden."""
        if not self.free_nodes:
            return None
        # It imports torch, for layers alone.
        from . import _device as device

        return device

    def constrained(self, operator: Any) -> Any:
        """Return a factory for an operator that obeys ``forbidden``, if given.

        Parameters
        ----------
        operator : type
            Takes ``forbidden`` and a layout.

        Returns
        -------
        callable
        """
        return operator if self.forbidden is None else partial(operator, forbidden=self.forbidden)


@parameters
class ChainStructure(LabelingStructure):
    """First-order label sequences of any length from 1 up.

    Parameters
    ----------
    start_end : bool, default=True
        Learn a score per class for the first and for the last position.
    transitions : bool, default=True
        Learn one score per pair of neighbouring classes, shared by all positions.
    forbidden : str or list of pairs, optional
        Neighbours that no sequence may have, in training, marginals and prediction: pairs (label,
        next label), None for the outside of the sequence (before the first, after the last); or the
        name of a scheme of chunk tags, "BIO" (or "IOB2"), "IOB1", "IOE1", "IOE2", "BILOU" (or
        "IOBES", "BIOES", "BMES"), which forbids what
        :func:`~structsolve.plugins.chain.tag_schemes.forbidden_pairs` lists.  Training refuses
        examples that have them.  Pairs of labels that y lacks cannot occur and are ignored; if all
        are such, they are refused.  An oracle from another package has to obey ``space.forbidden``.
    empty : bool, default=False
        Accept sequences of length 0.  Their only label is empty, with score and loss 0; they do not
        affect the weights.
        :class:`structsolve.Sequences`, :func:`structsolve.from_padded`
        and :class:`structsolve.SequenceVectorizer` accept them by an argument of this name.

    Notes
    -----
    X is a list of feature matrices of shape (length, n_features), dense or CSR, or a
    :class:`structsolve.Sequences`.  With edge features, each element is a pair
    ``(node_features, edge_features)`` with edge features of shape (length - 1, n_edge_features);
    they score each pair of neighbouring classes on top of the shared transitions.
    Y is a list of label sequences, strings or integers.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]]]
    >>> model = StructuredSVM("chain").fit(X, [["a", "b"], ["b"]])
    >>> [y.tolist() for y in model.predict(X)]
    [['a', 'b'], ['b']]

    With a tag scheme, no sequence begins inside a span:

    >>> from structsolve.plugins.chain import ChainStructure
    >>> Y = [["B-PER", "I-PER"], ["O"]]
    >>> model = StructuredSVM(ChainStructure(forbidden="BIO")).fit(X, Y)
    >>> model.predict([[[0.0, 1.0], [1.0, 0.0]]])[0].tolist()[0] != "I-PER"
    True
    """

    name = "chain"
    takes_marginals = True
    alike_nodes = True
    layouts = {"start_end": (True, False), "transitions": (True, False)}
    space_type = ChainSpace

    start_end: bool = True
    transitions: bool = True
    forbidden: Any = None
    empty: bool = False

    def stack(
        self, X: Any, n_features: int | None = None, n_edge_features: int | None = None
    ) -> Examples:
        """Return packed chains without labels."""
        return stack_chains(X, n_features, n_edge_features, bool(self.empty))

    def check_params(self) -> None:
        """Refuse unknown schemes, and forbidden transitions of a chain without transitions."""
        if self.forbidden is not None and not self.transitions:
            raise ValueError(
                "forbidden transitions need a chain with transitions=True, which this is not"
            )
        if isinstance(self.forbidden, str):
            forbidden_pairs([], self.forbidden)

    def ends(self) -> tuple[str, ...]:
        """Return the names of the blocks of both ends."""
        return ("start", "end") if self.start_end else ()

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random chains, without forbidden neighbours."""
        self.check_params()
        rng = np.random.default_rng(random_state)
        lengths = rng.integers(0 if self.empty else 1, size + 1, n)
        if self.empty and not lengths.any():
            lengths[-1] = size
        X = [rng.integers(-2, 3, (length, 3)).astype(float) for length in lengths]
        if self.forbidden is None:
            return X, [rng.integers(0, 3, length) for length in lengths]
        if isinstance(self.forbidden, str):
            names: list[Any] = ["O", *(f"{mark}-X" for mark in RULES[self.forbidden].marks)]
            pairs, choices = forbidden_pairs(names, self.forbidden), [names]
        else:
            pairs = [tuple(pair) for pair in self.forbidden]
            names = sorted({name for pair in pairs for name in pair} - {None}) or [0, 1, 2]
            # A label in no pair fits anywhere.
            choices = [names, [*names, names[-1] + type(names[-1])(1)]]
            if not all(_ways(names, {*pairs}, length)[-1] for length in range(1, size + 1)):
                del choices[0]
        for names in choices:
            for _ in range(20):
                Y = [_random_walk(rng, names, {*pairs}, length) for length in lengths]
                if any(_knows(pair, {None, *chain.from_iterable(Y)}) for pair in pairs):
                    return X, Y  # training refuses pairs of which it knows none
        return X, Y


def _pairs_and_ends(classes: list[Any], forbidden: Any) -> tuple[list[Any], list[Any]]:
    """Return pairs of labels, and pairs in which None stands for the outside of a chain."""
    if isinstance(forbidden, str):
        forbidden = forbidden_pairs(classes, forbidden)
    if not hasattr(forbidden, "__iter__"):
        raise ValueError(
            f"forbidden is {forbidden!r}, expected a list of pairs {PAIR}, or the name of a "
            "scheme of chunk tags such as 'BIO'"
        )
    forbidden = list(forbidden)
    ends = [p for p in forbidden if isinstance(p, (tuple, list)) and None in p]
    return [p for p in forbidden if p not in ends], ends


def _end_masks(classes: list[Any], ends: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the masks of the first and of the last node."""
    index = {c: k for k, c in enumerate(classes)}
    masks = np.zeros((2, len(index)))
    for pair in ends:
        label = [name for name in pair if name is not None]
        if len(pair) != 2 or len(label) != 1 or label[0] not in index:
            raise ValueError(
                f"forbidden: found {pair!r}, expected (None, label) or (label, None) of a "
                f"known class {classes[:12]}"
            )
        masks[int(pair[0] is not None), index[label[0]]] = -np.inf
    return masks[0], masks[1]


def _knows(pair: Any, known: set[Any]) -> bool:
    """Return whether a pair has only known labels; anything but a pair is refused elsewhere."""
    return not isinstance(pair, (tuple, list)) or known.issuperset(pair)


def _random_walk(rng: Any, names: list[Any], wrong: set[Any], length: int) -> list[Any]:
    """Return random labels without wrong neighbours: each can still reach the end."""
    labels = [None]
    for left in reversed(_ways(names, wrong, length)[:-1]):
        labels.append(rng.choice([b for b in left if (labels[-1], b) not in wrong]))
    return labels[1:]


def _ways(names: list[Any], wrong: set[Any], length: int) -> list[list[Any]]:
    """Return the labels from which the end can be reached, backwards; None for the beginning."""
    ways: list[list[Any]] = [[None]]
    for before in [names] * length + [[None]]:
        ways.append([a for a in before if any((a, b) not in wrong for b in ways[-1])])
    return ways[1:]


def stack_chains(
    X: Any, n_features: int | None = None, n_edge_features: int | None = None, empty: bool = False
) -> Examples:
    """Stack chains, with or without edge features, into packed examples.

    Parameters
    ----------
    X : list
        As :class:`ChainStructure` describes it.
    n_features, n_edge_features : int, optional
        Expected numbers of columns, if known; no ``n_edge_features`` then means that edges have no
        features.
    empty : bool, default=False
        Chains may have no nodes.

    Returns
    -------
    Examples
        Without labels.

    Raises
    ------
    ValueError
        For rows of edge features that do not fit the nodes, or the training data.
    """
    least = 0 if empty else 1
    if not isinstance(X, (list, tuple)) or not X or not isinstance(X[0], tuple):
        if n_edge_features is not None:
            raise ValueError(
                "this chain was trained with edge features: expected pairs (node_features, "
                "edge_features)"
            )
        nodes, offsets = packing.stack_rows(X, n_features, min_rows=least, compress=True)
        return Examples(offsets, nodes)
    if n_features is not None and n_edge_features is None:
        raise ValueError(
            "X holds pairs (node_features, edge_features), but the chain was trained without "
            "edge features"
        )
    for i, pair in enumerate(X):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                f"X, example {i}: expected a pair (node_features, edge_features), as example 0 is "
                "a tuple; without features of edges, pass the rows of an example as a list"
            )
    nodes, offsets = packing.stack_rows(
        [p[0] for p in X], n_features, min_rows=least, compress=True
    )
    edges, edge_offsets = packing.stack_rows(
        [p[1] for p in X], n_edge_features, "edge features", min_rows=0, compress=True
    )
    wrong = np.flatnonzero(np.diff(edge_offsets) != np.maximum(np.diff(offsets) - 1, 0))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"X, example {i}: {np.diff(edge_offsets)[i]} rows of edge features for "
            f"{np.diff(offsets)[i]} nodes, expected one row less than nodes"
        )
    return Examples(offsets, nodes, edge_offsets=edge_offsets, edges=edges)
