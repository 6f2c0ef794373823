"""Positions of the rows of scores and the labels of examples in padded arrays."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from ._sheets import extremes, flat_rows, padded_rows

#: Value of decoded labels beyond the end of an example.
PADDING = -1


class Places:
    """The places of one batch: maps padded or packed arrays to concatenated rows.

    Parameters
    ----------
    space : Space
    examples : Examples
    lead : tuple of int
        Axes of the node scores before those of one row: (examples,) of structures with one row per
        example, (rows,) of a packed batch, else (examples, ...) padded.
    packed : bool
        The first axis of ``lead`` counts rows, not examples.
    edge_lead : tuple of int, optional
        The same of the scores of edges: (edges,) or (examples, edges).
    tables : Tables, optional
        Tables of the space; kept for other batches.
    table_sizes : sequence, optional
        The arguments of ``pack_sizes()``, where only these distinguish examples.

    Attributes
    ----------
    first : ndarray of int64 or None
        First row of each example, if the rows of an example are contiguous, with a gap after them.
    index : ndarray of int64 or None
        The row of each node, for other orders.
    edge_first : ndarray of int64 or None
    label_shape : tuple of int
        Shape of the labels of the batch.

    Raises
    ------
    ValueError
        If the arrays are too small for the examples.
    """

    # Of the class, since each new set of lengths makes an object.
    first: np.ndarray | None = None
    index: np.ndarray | None = None
    edge_first: np.ndarray | None = None
    label_shape: tuple[int, ...]
    # Set where the labels are not those of the nodes.
    _label_index: np.ndarray | None = None
    #: Operators of the batch, if nobody else has the examples: then these never change.
    binding: Any = None
    fixed = False

    def __init__(
        self,
        space: Any,
        examples: Any,
        lead: tuple[int, ...],
        packed: bool,
        edge_lead: tuple[int, ...] | None = None,
        tables: Tables | None = None,
        *,
        table_sizes: Any = None,
    ):
        self.space, self.examples, self.lead, self.packed = space, examples, lead, packed
        self.edge_lead = edge_lead
        if packed or len(lead) == 1:
            n = examples.n
            rows = int(examples.offsets[-1])
            sizes = _steps(examples.label_offsets)
            _expect("scores", lead[0], rows, "rows, as lengths say" if packed else "examples")
            self.label_shape = (int(sizes.sum()),)
            if not packed and sizes.size and (sizes == sizes[0]).all():
                self.label_shape = (n,) if sizes[0] == 1 else (n, int(sizes[0]))
        else:
            _expect("scores", lead[0], examples.n, "examples, as there are lengths")
            self._pad(tables, table_sizes)
        if edge_lead is not None:
            self._edges(edge_lead)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "binding": None}

    def _pad(self, tables: Tables | None, table_sizes: Any) -> None:
        """Find the places in padded arrays."""
        n, room = self.lead[0], self.lead[1:]
        offsets, label_offsets = self.examples.offsets, self.examples.label_offsets
        if len(room) == 1:
            least, largest = extremes(offsets)
            if largest > room[0]:
                i = int(np.argmax(_steps(offsets) > room[0]))
                raise ValueError(
                    f"example {i}: its length is {_steps(offsets)[i]}, expected at most {room[0]}, "
                    "as scores have"
                )
            if least < room[0]:
                self.first = _first_rows(n, room[0])
            if label_offsets is offsets or np.array_equal(label_offsets, offsets):
                self.label_shape = self.lead
                return
        sizes = _steps(label_offsets)
        if len(room) == 1:
            like_nodes = False
            # Labels of one size, such as the two ends of a span, are not padded.
            columns = int(sizes[0]) if (sizes == sizes[0]).all() else max(room[0], int(sizes.max()))
        else:
            tables = tables or Tables(self.space)
            index, shapes = tables.index(self.examples, table_sizes, room)
            if len(index) != n * prod(room) or (np.diff(index) != 1).any():
                self.index = index
            like_nodes = np.array_equal(sizes, _steps(offsets))
            if like_nodes and (sizes <= 3).all():  # pictures of a pixel, or sentences of a word?
                like_nodes = tables.label_per_cell(len(room))
            # Else a label is as long as one of the axes, or as in trees over spans as none.
            axes = (shapes == sizes[:, None]).all(axis=0)
            shorter = room[int(np.argmax(axes))] if axes.any() else int(sizes.max())
            columns = tables.label_size(room) or shorter
        self.label_shape = self.lead if like_nodes else (n, columns)
        if like_nodes and self.index is not None:
            self._label_index = self.index
        elif (sizes != prod(self.label_shape[1:])).any():
            inside = np.arange(prod(self.label_shape[1:])) < sizes[:, None]
            self._label_index = np.flatnonzero(inside)

    @cached_property
    def label_index(self) -> np.ndarray | None:
        """The place of each label in padded ones; None: there is no gap."""
        if self._label_index is None and self.first is not None and self.label_shape == self.lead:
            sizes = _steps(self.examples.offsets)
            return np.flatnonzero(np.arange(self.lead[1]) < sizes[:, None])
        return self._label_index

    def _edges(self, lead: tuple[int, ...]) -> None:
        """Find the places of edges."""
        examples = self.examples
        total = 0 if examples.edge_offsets is None else int(examples.edge_offsets[-1])
        if len(lead) == 1:
            _expect("scores of edges", lead[0], total, "rows, the edges of all examples")
            return
        _expect("scores of edges", lead[0], examples.n, "examples")
        counts = np.diff(examples.edge_offsets)
        if (counts > lead[1]).any():
            i = int(np.argmax(counts > lead[1]))
            raise ValueError(
                f"example {i}: it has {counts[i]} edges, expected at most {lead[1]}, as their "
                "scores have"
            )
        if (counts < lead[1]).any():
            self.edge_first = lead[1] * np.arange(examples.n, dtype=np.int64)

    @property
    def whole(self) -> bool:
        """Whether arrays hold the rows of the examples in order, without gaps."""
        return self.first is None and self.index is None and self.edge_first is None

    def rows(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return node scores as rows.

        Parameters
        ----------
        array : ndarray of shape (*lead, *shape)
            Rows of one number may lack their axis.
        shape : tuple of int
            Shape of one row.

        Returns
        -------
        ndarray of shape (rows, *shape)
        """
        flat = array.reshape(-1, *shape)
        return flat if self.index is None else flat.take(self.index, 0)

    def pad(self, rows: np.ndarray, shape: Any) -> np.ndarray:
        """Return rows in the form of the node scores, 0 without a node.

        Parameters
        ----------
        rows : ndarray
            In the form that :meth:`rows` returns.
        shape : tuple of int
            Shape of the node scores.

        Returns
        -------
        ndarray
        """
        if self.index is None:
            return rows.reshape(shape)
        inner = rows.shape[1:]
        if prod(inner) == 1:  # three times faster for numbers than for rows of one
            rows, inner = rows.reshape(-1), ()
        padded = np.zeros((prod(self.lead), *inner), rows.dtype)
        padded[self.index] = rows
        return padded.reshape(shape)

    def packed_offsets(self, kind: str) -> np.ndarray | None:
        """Return the first row of each example, where the rows of a block are packed.

        Parameters
        ----------
        kind : {"shared", "node", "edge"}

        Returns
        -------
        ndarray of int64 of shape (n + 1,), or None
        """
        if kind == "node" and self.packed:
            return np.asarray(self.examples.offsets)
        if kind == "edge" and self.edge_lead is not None and len(self.edge_lead) == 1:
            return np.asarray(self.examples.edge_offsets)
        return None

    def inside(self, kind: str) -> np.ndarray | None:
        """Return which rows of padded arrays belong to an example.

        Parameters
        ----------
        kind : {"node", "edge"}

        Returns
        -------
        ndarray of bool, or None
            Its shape is that of the axes before those of one row; None: all do.
        """
        lead: Any
        first, lead, offsets = self.first, self.lead, self.examples.offsets
        if kind == "edge":
            first, lead, offsets = self.edge_first, self.edge_lead, self.examples.edge_offsets
        if first is not None:
            return np.arange(lead[1]) < _steps(offsets)[:, None]
        if kind == "edge" or self.index is None:
            return None
        return self.pad(np.ones(len(self.index), bool), lead)

    def labels(self, given: np.ndarray) -> np.ndarray:
        """Return the labels of a batch, one after the other.

        Parameters
        ----------
        given : ndarray of int

        Returns
        -------
        ndarray of int32 of shape (size of all labels,)

        Raises
        ------
        ValueError
            For another shape.
        """
        total = int(self.examples.label_offsets[-1])
        if given.shape == self.label_shape:
            if self.first is not None and given.dtype == np.int64 and given.shape == self.lead:
                return flat_rows(given, self.examples.label_offsets)
            flat = given.reshape(-1)
            return flat if self.label_index is None else flat[self.label_index]
        if given.shape == (total,):  # packed
            return given
        two = len(self.label_shape) == given.ndim == 2
        if two and not self.packed and self.label_shape != self.lead:
            sizes = np.diff(self.examples.label_offsets)
            if len(given) == len(sizes) and given.shape[1] >= sizes.max():  # padded further
                return given[np.arange(given.shape[1]) < sizes[:, None]]
        also = "" if self.label_shape == (total,) else f", or {(total,)} packed"
        raise ValueError(
            f"labels: found the shape {given.shape}, expected {self.label_shape}{also}"
        )

    def pad_labels(self, flat: np.ndarray) -> np.ndarray:
        """Return labels in the users' form, ``PADDING`` at missing ones.

        Parameters
        ----------
        flat : ndarray of int32 of shape (..., size of all labels)

        Returns
        -------
        ndarray of int64
        """
        more = flat.shape[:-1]
        if not more and self.first is not None and self.label_shape == self.lead:
            return padded_rows(flat, self.examples.label_offsets, self.lead[1], PADDING)
        if self.label_index is None:
            return flat.astype(np.int64).reshape(*more, *self.label_shape)
        padded = np.full((*more, prod(self.label_shape)), PADDING, np.int64)
        padded[..., self.label_index] = flat
        return padded.reshape(*more, *self.label_shape)


class Tables:
    """Places of examples whose scores are tables, such as pictures and arcs; cached by size.

    Parameters
    ----------
    space : Space
    """

    def __init__(self, space: Any):
        self.space = space
        self._kept: dict[Any, Any] = {}

    def index(
        self, examples: Any, sizes: Any, room: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the place of each row in padded tables.

        Parameters
        ----------
        examples : Examples
        sizes : sequence of hashable, or None
            Size of each example, where it determines its table.
        room : tuple of int
            Shape of a padded table.

        Returns
        -------
        index : ndarray of int64 of shape (rows,)
        shapes : ndarray of int of shape (n, axes)
            Shapes of the tables.

        Raises
        ------
        ValueError
            The message names an example whose table is larger.
        """
        if sizes is None:
            cells = self._cells(examples, len(room))
        else:
            cells = [self._of_size(size, len(room)) for size in sizes]
        shapes = np.array([shape for shape, _ in cells])
        beyond = (shapes > room).any(axis=1)
        if beyond.any():
            i = int(np.argmax(beyond))
            raise ValueError(
                f"example {i}: its scores are a table of shape {tuple(shapes[i].tolist())}, "
                f"expected at most {room}, as scores have room for"
            )
        places = np.concatenate([places for _, places in cells], axis=1)
        flat = np.ravel_multi_index(tuple(places), room)
        return flat + np.repeat(np.arange(examples.n), np.diff(examples.offsets)) * prod(
            room
        ), shapes

    def label_per_cell(self, axes: int) -> bool:
        """Return whether every cell has a label, as in pictures, or every row or column.

        Parameters
        ----------
        axes : int
            Number of axes of the tables.

        Returns
        -------
        bool
        """
        for size in (3, (3,) * axes):  # trees over two words have as many spans as cells
            try:
                examples = self.space.pack_sizes([size])
            except (TypeError, ValueError):
                continue
            return bool(examples.label_offsets[-1] == examples.offsets[-1])
        return True

    def label_size(self, room: tuple[int, ...]) -> int | None:
        """Return the length of the label of an example that fills a padded table.

        Parameters
        ----------
        room : tuple of int
            Shape of the table.

        Returns
        -------
        int or None
            None: sizes alone make no such example.
        """
        key = "label", room
        if key not in self._kept:
            self._kept[key] = None
            for size in (room[-1], room):
                try:
                    examples = self.space.pack_sizes([size])
                    if self._cells(examples, len(room))[0][0] == room:
                        self._kept[key] = int(examples.label_offsets[-1])
                        break
                except (TypeError, ValueError):
                    continue
        return self._kept[key]

    def _of_size(self, size: Any, axes: int) -> Any:
        if size not in self._kept:
            self._kept[size] = self._cells(self.space.pack_sizes([size]), axes)[0]
        return self._kept[size]

    def _cells(self, examples: Any, axes: int) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """Return the shape of each table, and the place in it of each of its rows."""
        rows = int(examples.offsets[-1])
        size = prod(self.space.layout.node.shape)
        numbers = np.repeat(np.arange(1.0, rows + 1), size).reshape(rows, size)
        cells = []
        for table in self.space.unpack_scores(numbers, examples):
            shape = np.shape(table)[:axes]
            if len(shape) < axes:
                raise ValueError(
                    f"scores have {axes + 1} axes before those of one row, expected "
                    f"{np.ndim(table)}"
                )
            first = np.asarray(table).reshape(*shape, -1)[..., 0]
            places = np.array(np.nonzero(first))
            cells.append((shape, places[:, np.argsort(first[tuple(places)])]))
        return cells


@lru_cache(maxsize=64)  # a network's batches differ in their lengths alone
def _first_rows(n: int, longest: int) -> np.ndarray:
    """Return the first row of each padded example."""
    first = longest * np.arange(n, dtype=np.int64)
    first.flags.writeable = False
    return first


def _steps(offsets: np.ndarray) -> np.ndarray:
    """Return the size of each example; a fraction of the time of ``np.diff``."""
    return offsets[1:] - offsets[:-1]


def _expect(what: str, given: int, expected: int, of: str) -> None:
    if given != expected:
        raise ValueError(f"{what}: found {given} along the first axis, expected {expected} {of}")
