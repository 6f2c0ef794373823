"""Padded and packed batches of scores: their space, and the positions of their rows."""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import registry
from ..examples.packed import Examples
from ..utils.params import check_choice
from ..utils.suggest import a_type
from .places import Places, Tables
from .scores import Scores
from .spaces import score_space

#: Number of batches, by shapes and lengths, that are known per structure.
KEPT = 8
_REDUCTIONS = ("mean", "sum", "none")


@dataclass
class Batch:
    """The positions of one batch's scores in a network's arrays.

    Parameters
    ----------
    space : Space
    places : Places
    blocks : tuple of Block
        The space's block of each array.
    """

    space: Any
    places: Places
    blocks: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the blocks."""
        return tuple(block.name for block in self.blocks)

    def scores(self, arrays: Any) -> Scores:
        """Return arrays as scores for native code.

        Parameters
        ----------
        arrays : sequence of ndarray
            In the order of ``names``; shared blocks may have one array for each example.

        Returns
        -------
        Scores
        """
        places, node, edge, each = self.places, None, None, False
        shared: dict[str, np.ndarray] = {}
        for block, array in zip(self.blocks, arrays):
            if block.kind == "node":
                node = places.rows(array, block.shape)
            elif block.kind == "edge":
                edge = array.reshape(-1, *block.shape)
            else:
                shared[block.name] = array
                each = each or array.ndim > len(block.shape)
        if each:  # if one block differs from example to example, all do
            for block in self.blocks:
                own = shared.get(block.name)
                if own is not None and own.ndim == len(block.shape):
                    repeated = np.broadcast_to(own, (places.examples.n, *own.shape))
                    shared[block.name] = np.ascontiguousarray(repeated)
        answer = Scores(node, shared, edge, places.examples, places.first, places.edge_first)
        answer.places = places if places.fixed else None  # type: ignore[assignment]
        return answer

    def arrays(self, answer: Any, shapes: Any) -> list[np.ndarray]:
        """Convert from the form of the scores to the form of the arrays.

        Parameters
        ----------
        answer : Scores
            Gradients, or marginals with shared blocks for each example.
        shapes : sequence of tuple of int
            Shapes of the given arrays, in the order of ``names``.

        Returns
        -------
        list of ndarray
        """
        arrays = []
        for block, shape in zip(self.blocks, shapes):
            if block.kind == "node":
                arrays.append(self.places.pad(answer.node, tuple(shape)))
            elif block.kind == "shared":
                arrays.append(answer.shared[block.name])
            else:
                arrays.append(answer.edge.reshape(tuple(shape)))
        return arrays

    def inner(self, parts: Any, arrays: Any) -> np.ndarray:
        """Return ``<part, array>`` of every example.

        Parameters
        ----------
        parts : sequence of ndarray
            In the form of the arrays, shared blocks for each example.
        arrays : sequence of ndarray

        Returns
        -------
        ndarray of float64 of shape (n,)
        """
        total = np.zeros(self.places.examples.n)
        for block, part, array in zip(self.blocks, parts, arrays):
            each = np.multiply(part, array, dtype=np.float64)
            rows = each.reshape(len(each), math.prod(each.shape[1:])).sum(1)
            offsets = self.places.packed_offsets(block.kind)
            if offsets is not None:
                rows = np.diff(np.concatenate([[0], np.cumsum(rows)])[offsets])
            total += rows
        return total


class Batches:
    """A structure's batches: spaces by number of classes, and the places of the last batches.

    Parameters
    ----------
    structure : Structure
    classes : int or sequence, optional
        Number of classes, or their names; by default the length of the last axis of the node
        scores.
    """

    def __init__(self, structure: Any, classes: Any = None):
        self.structure, self.classes = structure, classes
        self._kinds: dict[Any, _Kind] = {}
        self._positions: dict[int, bool] = {}
        self._has_none = self.warned = False

    def read(
        self, shapes: dict[str, tuple[int, ...]], lengths: Any, examples: Any, **graphs: Any
    ) -> Batch:
        """Check the shapes of a batch of scores.

        Parameters
        ----------
        shapes : dict of str to tuple of int
            Shape of each block's array; ``"node"`` and ``"edge"`` stand for the space's own names.
        lengths : array or list of int, or None
        examples : Examples or None
        **graphs : object
            Further arguments of the structure's ``pack_sizes()``.

        Returns
        -------
        Batch

        Raises
        ------
        ValueError, TypeError
            If they do not fit.
        """
        kind = self._kind(shapes)
        layout, known = kind.space.layout, kind.blocks
        by_name = {}
        for name, shape in shapes.items():
            block = known.get(name)
            if block is None:
                raise ValueError(
                    f"scores: found the block {name!r}, expected some of {kind.names} of structure "
                    f"{self.structure.name!r}"
                )
            by_name[block.name] = shape
        node = by_name.get(layout.node.name)
        if node is None:
            raise ValueError(f"scores: found {list(shapes)}, expected a block {layout.node.name!r}")
        self._warn_once(kind.joining, by_name)
        edge = by_name.get(layout.edge.name) if layout.edge is not None else None
        places = kind.places(node, edge, lengths, examples, graphs)
        return Batch(kind.space, places, tuple([known[name] for name in by_name]))

    def _warn_once(self, joining: dict[str, tuple[int, ...]], names: Any) -> None:
        """Warn if no scores join nodes."""
        if self.warned or not joining or joining.keys() & set(names):
            return
        self.warned = True
        some = " or ".join(f"{name!r} of shape {shape}" for name, shape in joining.items())
        warnings.warn(
            f"structure {self.structure.name!r}: no score joins its nodes, so nodes get their "
            f"labels apart; give {some} beside 'node', such as parameters of the network, or "
            "structsolve.torch.OutputLayer, which holds them (zeros say that none is meant)",
            stacklevel=5,
        )

    def space(self, shapes: dict[str, tuple[int, ...]]) -> Any:
        """Return the space that takes scores of these shapes; warn if none joins nodes.

        Parameters
        ----------
        shapes : dict of str to tuple of int

        Returns
        -------
        Space
        """
        kind = self._kind(shapes)
        known = [kind.blocks[name].name for name in shapes if name in kind.blocks]
        self._warn_once(kind.joining, known)
        return kind.space

    def layout(self, shapes: dict[str, tuple[int, ...]]) -> Any:
        """Return the layout of the space that takes scores of these shapes.

        Parameters
        ----------
        shapes : dict of str to tuple of int

        Returns
        -------
        WeightLayout
        """
        return self._kind(shapes).space.layout

    def lead(self, shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
        """Return the axes of the node scores before those of one row.

        Parameters
        ----------
        shapes : dict of str to tuple of int

        Returns
        -------
        tuple of int, or None
            None: there are no node scores.
        """
        kind = self._kind(shapes)
        node = kind.space.layout.node
        shape = shapes.get("node", shapes.get(node.name))
        return None if shape is None else kind.lead(shape, node, "node")

    def has_positions(self, axes: int) -> bool:
        """Return whether each row of node scores is that of a position.

        Parameters
        ----------
        axes : int
            Of the node scores.

        Returns
        -------
        bool
            False for pairs of a table, and where an example is one row.
        """
        if axes not in self._positions:
            self._positions[axes] = True
            try:  # whatever the number of classes, which may be unknown in a graph
                made = Batches(self.structure, self.classes)
                kind = made._kind({"node": (1,) * (axes - 1) + (2,)})
                table = kind.space.layout.node.shape == (1,) and not kind.one_class
                self._positions[axes] = not (kind.one_row or table)
            except (TypeError, ValueError):
                pass
        return self._positions[axes]

    def labels_like_nodes(self, axes: int, classes: int) -> bool:
        """Return whether padded labels have the shape of the node scores without the last axis.

        Parameters
        ----------
        axes : int
            Of the node scores.
        classes : int
            Length of the last axis.

        Returns
        -------
        bool
        """
        shape = (2, 3, 4)[: axes - 1]
        try:
            return self.read({"node": (*shape, classes)}, None, None).places.label_shape == shape
        except (TypeError, ValueError):
            return False

    def _one_class(self, classes: Any, space: Any) -> bool:
        """Return whether rows of one number belong to one class."""
        count = classes if isinstance(classes, (int, np.integer, type(None))) else len(classes)
        if count != 1 or self._has_none or space.layout.node.shape != (1,):
            return False
        try:
            return score_space(self.structure, 2).layout.node.shape == (2,)
        except (TypeError, ValueError):
            return False

    def _kind(self, shapes: dict[str, tuple[int, ...]]) -> _Kind:
        """Return the space for these blocks, kept by the number of classes."""
        node = shapes.get("node", next(iter(shapes.values()), ()))
        # For structures without classes, the last axis has the length that the batch needs.
        told = self.classes is not None or self._has_none
        classes = node[-1] if len(node) > 1 and not told else self.classes
        key = (classes if not told else None, "edge" in shapes)
        if key not in self._kinds:
            space, self._has_none = _space_of(self.structure, classes, key[1], told)
            if self._has_none:
                key = (None, key[1])
            self._kinds[key] = _Kind(space, self._one_class(classes, space))
        return self._kinds[key]


def _space_of(structure: Any, classes: Any, edge: bool, told: bool) -> tuple[Any, bool]:
    """Return a space of a number of classes, or of a structure without classes; and which it is."""
    try:
        return score_space(structure, classes, edge=edge), told and classes is None
    except (TypeError, ValueError) as error:
        if told:
            raise
        try:
            return score_space(structure, edge=edge), True
        except (TypeError, ValueError):
            if str(error).startswith("classes"):
                raise  # another error
            raise error from None


class _Kind:
    """A space and the places of its last batches."""

    def __init__(self, space: Any, one_class: bool = False):
        self.space, self.tables, self.one_class = space, Tables(space), one_class
        layout = space.layout
        self.blocks = {block.name: block for block in layout.blocks}
        self.names = list(self.blocks)
        for kind in ("node", "edge"):
            block = getattr(layout, kind)
            if block is not None:
                self.blocks.setdefault(kind, block)
        #: Blocks whose scores depend on the labels of two nodes.
        self.joining = {
            block.name: block.shape if block.kind == "shared" else ("edges", *block.shape)
            for block in layout.blocks
            if block.kind == "edge" or (block.kind == "shared" and len(block.shape) > 1)
        }
        try:  # finds out whether the structure takes the number of examples, or sizes
            self.one_row = space.pack_sizes(2).n == 2
        except (TypeError, ValueError):
            self.one_row = False
        self._kept: OrderedDict[Any, tuple[Any, Places | None]] = OrderedDict()

    def places(
        self,
        node: tuple[int, ...],
        edge: tuple[int, ...] | None,
        lengths: Any,
        examples: Any,
        graphs: dict[str, Any],
    ) -> Places:
        """Return the places of rows, cached for shapes and lengths that come again."""
        lead = self.lead(node, self.space.layout.node, "node")
        edge_lead = None
        if edge is not None:
            edge_lead = self.lead(edge, self.space.layout.edge, "edge")
        sizes = None if lengths is None else _sizes(lengths)
        key: Any = (lead, edge_lead, None if sizes is None else (sizes.shape, sizes.tobytes()))
        if examples is not None:
            key = (*key, id(examples))
        known = None if graphs else self._kept.get(key)
        if known is not None and known[1] is not None:
            self._kept.move_to_end(key)
            return known[1]
        places = self._make(lead, edge_lead, sizes, examples, graphs)
        if not graphs:
            places.fixed = examples is None
            # Lengths that come once are not kept: their memory serves the next batch, while warm.
            # Examples are kept, so no other object gets their id.
            once = places.fixed and known is None
            self._kept[key] = examples, None if once else places
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return places

    def lead(self, shape: tuple[int, ...], block: Any, kind: str) -> tuple[int, ...]:
        """Return the axes before those of one row."""
        row = () if block.shape == (1,) and not self.one_class else tuple(block.shape)
        if self.one_row and kind == "node" and not row:
            row = shape[1:]  # (examples,) and (examples, 1) are the same
            if row not in ((), (1,)):
                raise ValueError(
                    f"scores: {block.name!r} has shape {shape}, expected one number each"
                )
        none = 0 in shape and kind != "edge"  # examples of one node have no edges
        if len(shape) <= len(row) or shape[len(shape) - len(row) :] != row or none:
            expected = f"axes of examples before those of one row, {row}"
            raise ValueError(
                f"scores: the block {block.name!r} has shape {shape}, expected "
                f"{'no axis of 0: at least one example and row' if none else expected}"
            )
        return shape[: len(shape) - len(row)]

    def _make(
        self,
        lead: tuple[int, ...],
        edge_lead: tuple[int, ...] | None,
        sizes: np.ndarray | None,
        examples: Any,
        graphs: dict[str, Any],
    ) -> Places:
        space, packed, table_sizes = self.space, False, None
        if self.one_row:
            if len(lead) > 1:
                raise ValueError(
                    f"scores: found the axes {lead} before those of one row, expected the number "
                    f"of examples: structure {space.structure.name!r} has one row for each"
                )
            if sizes is not None:
                raise ValueError(
                    f"lengths: structure {space.structure.name!r} has one row of scores for each "
                    "example, expected none"
                )
        else:
            packed = len(lead) == 1
        if examples is not None:
            if not isinstance(examples, Examples):
                raise TypeError(f"examples is {a_type(examples)}, expected Examples")
            if sizes is not None or graphs:
                raise ValueError("examples tell sizes and graphs: expected no lengths beside them")
        elif self.one_row:
            examples = space.pack_sizes(lead[0], **graphs)
        elif sizes is not None and sizes.ndim == 1 and len(lead) < 3:  # no table
            examples = space.pack_sizes(sizes, **graphs)
        elif packed and sizes is None:
            raise ValueError(
                f"scores: found one axis, {lead[0]} rows, before those of one row; expected "
                "(examples, longest) for a padded batch, or lengths= for a packed one"
            )
        else:
            examples, table_sizes = self._examples(lead, sizes, graphs)
        tables = self.tables
        return Places(space, examples, lead, packed, edge_lead, tables, table_sizes=table_sizes)

    def _examples(self, lead: tuple[int, ...], sizes: Any, graphs: dict[str, Any]) -> Any:
        """Return examples of sizes, and the sizes if they determine an example."""
        if sizes is not None:
            each = sizes.tolist() if sizes.ndim == 1 else [*map(tuple, sizes.tolist())]
            return self.space.pack_sizes(each, **graphs), None if graphs else each
        # As large as there is room: a table has a size for each axis, or one for all.
        options: list[Any] = [lead[1]] if len(lead) == 2 else [lead[1:], lead[-1]]
        for size in options:
            try:
                each = [size] * lead[0]
                return self.space.pack_sizes(each, **graphs), None if graphs else each
            except ValueError:
                if size is options[-1]:
                    raise


def _sizes(lengths: Any) -> np.ndarray:
    """Return lengths as integers."""
    sizes = np.asarray(lengths)
    if sizes.dtype.kind not in "iu" or sizes.ndim not in (1, 2):
        raise ValueError(
            f"lengths: found {sizes.dtype} of shape {sizes.shape}, expected an integer per example "
            "(lengths = mask.sum(1) of a mask)"
        )
    return sizes.astype(np.int64)


def kept(kind: Callable[..., Any], structure: Any, classes: Any, n_jobs: Any) -> Any:
    """Return a layer of a structure; those of names are kept, for calls that name it every time.

    Parameters
    ----------
    kind : type
        Called with the others.
    structure : str or Structure
    classes : int or sequence, optional
    n_jobs : int, optional

    Returns
    -------
    object
    """
    if not isinstance(structure, str) or not isinstance(classes, (int, type(None))):
        return kind(structure, classes, n_jobs)
    layer = _named(kind, structure, classes, n_jobs, registry.default().version)
    layer._batches.warned = False  # each call that names a structure warns, as each new layer does
    return layer


@lru_cache(maxsize=32, typed=True)
def _named(kind: Callable[..., Any], structure: str, classes: Any, n_jobs: Any, _: Any) -> Any:
    return kind(structure, classes, n_jobs)


def check_reduction(reduction: Any) -> None:
    """Refuse unknown reductions.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
    """
    check_choice("reduction", reduction, _REDUCTIONS)
