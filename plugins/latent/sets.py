"""Partial labels: for every node one label, a set of allowed labels, or any label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.structure.base import Space
from structsolve.structure.pack import pack
from structsolve.structure.weighted_labels import WeightedLabels

_SETS = (set, frozenset, list, tuple, np.ndarray, type(None))


@dataclass
class Sets:
    """The classes that are allowed at every node.

    Parameters
    ----------
    rows : ndarray of int32 of shape (n_nodes,)
        The set of each node, of all examples one after the other.
    table : ndarray of bool of shape (n_sets, K)
        The classes (or states) that belong to each set.
    """

    rows: np.ndarray
    table: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Sizes of the sets, of shape (n_sets,)."""
        return self.table.sum(axis=1)

    def latent(self) -> np.ndarray:
        """Return the nodes with more than one allowed class.

        Returns
        -------
        ndarray of int
        """
        return np.flatnonzero(self.sizes[self.rows] > 1)

    def lifted(self, owner: np.ndarray) -> Sets:
        """Return the sets of states whose classes belong to these sets.

        Parameters
        ----------
        owner : ndarray of int of shape (n_states,)
            The class of each state.

        Returns
        -------
        Sets
        """
        return Sets(self.rows, self.table[:, owner])


@dataclass
class Given:
    """The parsed content of y.

    Parameters
    ----------
    full : as y
        With one allowed label at every node.
    named : set
        All labels in sets.
    nodes : dict of int to tuple
        For node numbers: allowed labels (None for all), the example, and the position in it.
    void : list
        Labels that are no classes.
    axes : {0, 1, 2}
        Number of axes of one example's labels: 0 for single nodes, 2 for pictures.
    size : int
        Number of nodes; 0 if there are no sets.
    """

    full: Any
    named: set[Any]
    nodes: dict[int, tuple[frozenset[Any] | None, int, int]]
    void: list[Any]
    axes: int
    size: int = 0

    def marked(self, classes: np.ndarray) -> Any:
        """Return labels of two classes, the second one at the nodes with sets.

        Labels that are no classes, such as those of void nodes, are kept.

        Parameters
        ----------
        classes : ndarray of shape (K,), K >= 2

        Returns
        -------
        as y
        """
        names, row, sequences = classes.tolist(), 0, []
        for entries in self.full if self.axes else [self.full]:
            flat = [_plain(label) for label in _flat(getattr(entries, "labels", entries))]
            marks = [names[row + v in self.nodes] if e in names else e for v, e in enumerate(flat)]
            sequences.append(np.array(marks).reshape(np.shape(getattr(entries, "labels", entries))))
            row += len(flat)
        return sequences if self.axes else sequences[0]

    def classes(self) -> list[Any] | None:
        """Return all labels, sorted, if some occur only in sets.

        Returns
        -------
        list, or None
            None if ``full`` contains all labels.
        """
        if not self.named:
            return None
        alone: set[Any] = set()
        for entries in self.full if self.axes else [self.full]:
            alone.update(_plain(label) for label in _flat(getattr(entries, "labels", entries)))
        alone.difference_update(self.void)
        return sorted(alone | self.named) if self.named - alone else None


def split(y: Any, axes: int = 1, void: Any = None) -> Given:
    """Separate sets of labels from labels.

    Parameters
    ----------
    y : as users give it
        Labels in the form of the structure, but an entry of a list, or of an array of objects, may
        be a list, tuple, set or array of labels, or None.
    axes : {0, 1, 2}, default=1
        Number of axes of one example's labels: 0 if it is one entry of y, 2 for pictures, which may
        be lists of rows.
    void : label or sequence of labels, optional
        Void labels of the structure: if None is among them, None means void, not "any".

    Returns
    -------
    Given

    Raises
    ------
    ValueError
        For an empty set or labels of two kinds, naming the example and the node; when y names no
        label at all.

    Examples
    --------
    >>> given = split([["a", ["b", "a"]], [None]])
    >>> given.full, sorted(given.named)
    ([['a', 'a'], ['a']], ['a', 'b'])
    """
    y = y.to_numpy() if hasattr(y, "to_numpy") else y
    given = Given(y, set(), {}, [] if void is None else list(np.ravel(void).tolist()), axes)
    if not isinstance(y, (list, tuple, np.ndarray)) or not _may_hold_sets(y, axes):
        return given
    sequences = list(y) if axes else [y]
    if axes == 2:
        sequences = [_picture(entries) for entries in sequences]
    row, spoilt = 0, set()
    holds = _SETS[:-1] if None in given.void else _SETS
    for i, entries in enumerate(sequences):
        if entries is None:
            raise ValueError(f"y, example {i}: found None, expected one None for each of its nodes")
        if isinstance(entries, WeightedLabels):
            _refuse_sets(entries, i, axes, holds)
        if not _holds_sets(entries, holds):
            row += np.size(entries) if isinstance(entries, np.ndarray) else _length(entries)
            continue
        spoilt.add(i)
        for v, entry in enumerate(_flat(entries)):
            if isinstance(entry, holds):
                place = (i, v) if axes else (v, 0)
                given.nodes[row] = (_members(entry, *place), *place)
            row += 1
    if not spoilt:
        return given
    for members, _, _ in given.nodes.values():
        given.named.update(members or ())
    if len({isinstance(label, str) for label in given.named}) > 1:
        raise ValueError("y mixes strings and numbers; use one kind of label for all examples")
    anything = next(iter(sorted(given.named)), None)
    if anything is None:
        alone = (label for entries in sequences for label in _labels(entries))
        anything = next((label for label in alone if label not in given.void), None)
    if anything is None:
        raise ValueError("y names no label: it allows any label at every node; name some labels")
    full = [_filled(e, anything, holds) if i in spoilt else e for i, e in enumerate(sequences)]
    given.full, given.size = full if axes else full[0], row
    return given


def _picture(entries: Any) -> Any:
    """Return rows of one length as an array of objects; anything else unchanged."""
    rows = list(entries) if isinstance(entries, (list, tuple)) else []
    if not rows or not all(isinstance(row, (list, tuple)) for row in rows):
        return entries
    if len({len(row) for row in rows}) > 1:
        return entries
    picture = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, label in enumerate(row):
            picture[i, j] = label
    return picture


def _may_hold_sets(y: Any, axes: int) -> bool:
    # Arrays of labels are recognised without reading their entries.
    if isinstance(y, np.ndarray):
        return y.dtype == object
    return not axes or any(not isinstance(e, np.ndarray) or e.dtype == object for e in y)


def _refuse_sets(weighted: WeightedLabels, i: int, axes: int, holds: Any) -> None:
    entries = _picture(weighted.labels) if axes == 2 else weighted.labels
    if _holds_sets(entries, holds):
        v = next(v for v, entry in enumerate(_flat(entries)) if isinstance(entry, holds))
        raise ValueError(
            f"y, example {i}, node {v}: found several allowed labels, or None, within "
            "WeightedLabels, expected one label at every node, or labels without weights"
        )


def _holds_sets(entries: Any, holds: tuple[type, ...]) -> bool:
    if isinstance(entries, np.ndarray) and entries.dtype != object:
        return False
    sequence = isinstance(entries, (list, tuple, np.ndarray))
    return sequence and any(isinstance(e, holds) for e in _flat(entries))


def _length(entries: Any) -> int:
    return len(entries) if hasattr(entries, "__len__") else 1


def _flat(entries: Any) -> Any:
    return entries.ravel() if isinstance(entries, np.ndarray) else entries


def _labels(entries: Any) -> Iterator[Any]:
    """Yield the labels outside of sets."""
    for entry in _flat(getattr(entries, "labels", entries)):
        if not isinstance(entry, _SETS):
            yield _plain(entry)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _members(entry: Any, i: int, v: int) -> frozenset[Any] | None:
    if entry is None:
        return None
    labels = [_plain(label) for label in _flat(entry)]
    if not labels:
        raise ValueError(
            f"y, example {i}, node {v}: the set of allowed labels is empty; give at least one "
            "label, or None for all"
        )
    for label in labels:
        if not isinstance(label, (str, bool, int, float)):
            raise ValueError(
                f"y, example {i}, node {v}: the set holds {label!r}, expected strings or integers"
            )
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(
            f"y, example {i}, node {v}: the set {sorted(labels, key=str)} mixes strings and numbers"
        )
    return frozenset(labels)


def _filled(entries: Any, anything: Any, holds: tuple[type, ...]) -> Any:
    """Return the entries with each set replaced by its smallest label."""

    def one(entry: Any) -> Any:
        if not isinstance(entry, holds):
            return entry
        if entry is None:
            return anything
        return min(_plain(label) for label in _flat(entry))

    filled = [one(entry) for entry in _flat(entries)]
    if isinstance(entries, np.ndarray):
        return np.array(filled, dtype=object if None in filled else None).reshape(entries.shape)
    return filled


def sets_of(given: Given, X: Any, space: Space, examples: Examples) -> Sets:
    """Return the classes that each node allows.

    Parameters
    ----------
    given : Given
    X : as users give it
        Read again if void nodes were left out of the examples.
    space : Space
        Space of the classes.
    examples : Examples
        Packed; the labels are those of ``given.full``.

    Returns
    -------
    Sets
        The first K sets hold one class each.

    Raises
    ------
    ValueError
        The message names the example and the node with a label that is not a class.
    """
    classes = space.classes_
    K = len(classes)
    number = {label: k for k, label in enumerate(classes.tolist())}
    rows, table = examples.labels.copy(), [np.eye(K, dtype=bool)]
    known: dict[frozenset[Any] | None, int] = {}
    places = list(given.nodes)
    if given.size not in (0, len(rows)) and K > 1:
        marked = given.marked(classes)
        places = np.flatnonzero(pack(space, X, marked).labels == 1).tolist()
    for row, (members, i, v) in zip(places, given.nodes.values()):
        if members not in known:
            line = np.full(K, members is None)
            for label in members or ():
                if label not in number:
                    raise ValueError(
                        f"y, example {i}, node {v}: allowed label {label!r} is no class; known: "
                        f"{classes.tolist()[:12]}"
                    )
                line[number[label]] = True
            known[members] = K + len(known)
            table.append(line[None])
        rows[row] = known[members]
    return Sets(rows, np.concatenate(table))
