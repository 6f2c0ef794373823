"""What all layers share: tensors in, the batch's scores for native code, gradients out."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import registry
from ..batch import Scores, score_space
from ..examples.packed import Examples
from .places import Places, Tables

#: Batches whose places are kept, per layer: of the same shapes and lengths.
KEPT = 64
_DOUBLES = (torch.float32, torch.float64)


@dataclass
class Given:
    """Scores of one batch.

    Parameters
    ----------
    space : Space
    scores : Scores
        What native code reads.
    places : Places
    names : tuple of str
        The block of each tensor.
    tensors : tuple of Tensor
    plain : bool
        Users gave one tensor, not a dict.
    """

    space: Any
    scores: Scores
    places: Places
    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]
    plain: bool

    def tensors_of(self, answer: Any) -> list[torch.Tensor]:
        """Return what has the form of the scores as tensors, in the order of those given.

        Parameters
        ----------
        answer : Scores
            Gradients, or marginals with shared blocks for each example.

        Returns
        -------
        list of Tensor
            Of the devices and types of those given.
        """
        tensors = []
        for name, like in zip(self.names, self.tensors):
            kind = self.space.layout.block(name).kind
            if kind == "node":
                array = self.places.pad(answer.node, tuple(like.shape))
            else:
                array = answer.shared[name] if kind == "shared" else answer.edge.reshape(like.shape)
            tensor = torch.from_numpy(array)
            same = like.device.type == "cpu" and tensor.dtype == like.dtype
            tensors.append(tensor if same else tensor.to(like.device, like.dtype))
        return tensors

    def scores_of(self, tensors: Any) -> Scores:
        """Return tensors in the form of the scores as native code reads them.

        Parameters
        ----------
        tensors : sequence of Tensor
            In the order of ``names``; shared blocks may have one array for each example.

        Returns
        -------
        Scores
        """
        layout, places = self.space.layout, self.places
        answer: Any = Scores(None, {}, None, places.examples, places.first, places.edge_first)
        for name, tensor in zip(self.names, tensors):
            array = as_array(tensor, name)
            kind = layout.block(name).kind
            if kind == "node":
                answer.node = places.rows(array, layout.node.shape)
            elif kind == "edge":
                answer.edge = array.reshape(-1, *layout.edge.shape)
            else:
                answer.shared[name] = array
        axes = {
            name: array.ndim - len(layout.block(name).shape)
            for name, array in answer.shared.items()
        }
        if any(axes.values()):  # where one block differs from example to example all do
            for name, more in axes.items():
                if not more:
                    own = answer.shared[name]
                    repeated = np.broadcast_to(own, (places.examples.n, *own.shape))
                    answer.shared[name] = np.ascontiguousarray(repeated)
        return answer

    def product(self, tensors: Any, parts: Any) -> torch.Tensor:
        """Return ``<scores, mu>`` of every example.

        Parameters
        ----------
        tensors : sequence of Tensor
            In the order of ``names``; shared blocks may have one array for each example.
        parts : sequence of Tensor
            In the same form, shared blocks for each example.

        Returns
        -------
        Tensor of shape (n,)
        """
        n = self.places.examples.n
        total: Any = 0
        for name, tensor, part in zip(self.names, tensors, parts):
            # What is not there counts for nothing, even -inf or what lies beyond the end.
            each = torch.where(part != 0, part * tensor, torch.zeros_like(part))
            example = self._example_of(name)
            if example is None:
                total = total + each.reshape(n, -1).sum(1)
            else:
                rows = each.reshape(len(example), -1).sum(1)
                total = total + rows.new_zeros(n).index_add(0, example.to(rows.device), rows)
        return total

    def weigh(self, name: str, weights: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor times a weight for each example; shared blocks are summed.

        Parameters
        ----------
        name : str
            Of the block.
        weights : Tensor of shape (n,)
        tensor : Tensor
            In the form of the block's scores; a shared block has one array for each example.

        Returns
        -------
        Tensor
            0 beyond the end of an example.
        """
        example = self._example_of(name)
        factor = (weights if example is None else weights[example.to(weights.device)]).to(tensor)
        weighed = factor.reshape(-1, *[1] * (tensor.ndim - 1)) * tensor
        block = self.space.layout.block(name)
        if block.kind == "shared":
            return weighed.sum(0)
        inside = self.places.inside(block.kind)
        if inside is None:
            return weighed
        mask = torch.from_numpy(inside).to(weighed)
        return weighed * mask.reshape(*mask.shape, *[1] * (weighed.ndim - mask.ndim))

    def _example_of(self, name: str) -> torch.Tensor | None:
        """Return the example of each row of a packed block; None of those by example."""
        offsets = self.places.packed_offsets(self.space.layout.block(name).kind)
        if offsets is None:
            return None
        return torch.repeat_interleave(torch.from_numpy(np.diff(offsets)))

    def labels(self, flat: np.ndarray) -> torch.Tensor:
        """Return labels as a tensor in the form in which users give them.

        Parameters
        ----------
        flat : ndarray of int32 of shape (..., size of all labels)

        Returns
        -------
        Tensor of int64
        """
        return torch.from_numpy(self.places.pad_labels(flat)).to(self.tensors[0].device)

    def in_form(self, tensors: Any) -> Any:
        """Return tensors as users gave the scores: one, or a dict by block.

        Parameters
        ----------
        tensors : sequence of Tensor

        Returns
        -------
        Tensor or dict of str to Tensor
        """
        return tensors[0] if self.plain else dict(zip(self.names, tensors))


class Layer(torch.nn.Module):
    """A module over a structure: it has no parameters, and keeps what it needs by shape.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        How many classes there are, or their names; by default as many as the last axis of the node
        scores has.
    n_jobs : int, optional
        Threads of native code; no bit of an answer depends on it.
    """

    def __init__(self, structure: Any, classes: Any = None, n_jobs: int | None = None):
        super().__init__()
        if isinstance(structure, str):
            structure = registry.default().make("structures", structure)
        self.structure, self.classes, self.n_jobs = structure, classes, n_jobs
        self._kinds: dict[Any, _Kind] = {}
        self._has_none = False

    def extra_repr(self) -> str:
        """Return the settings, for ``print``.

        Returns
        -------
        str
        """
        return f"{self.structure!r}"

    def read(self, scores: Any, lengths: Any = None, examples: Any = None, **graphs: Any) -> Given:
        """Check a batch of scores.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            As of :class:`StructuredLoss`, as are the others.
        lengths : Tensor, array or list of int, optional
        examples : Examples, optional
        **graphs : object

        Returns
        -------
        Given

        Raises
        ------
        ValueError, TypeError
            When they do not fit.
        """
        plain = not isinstance(scores, dict)
        named = {"node": scores} if plain else scores
        kind = self._kind(named)
        layout, known = kind.space.layout, kind.blocks
        by_name = {}
        for name, tensor in named.items():
            own = known.get(name)
            if own is None:
                raise ValueError(
                    f"scores: found the block {name!r}, expected some of {kind.names} of structure "
                    f"{self.structure.name!r}"
                )
            by_name[own] = tensor
        node = by_name.get(layout.node.name)
        if node is None:
            raise ValueError(f"scores: found {list(named)}, expected a block {layout.node.name!r}")
        edge = by_name.get(layout.edge.name) if layout.edge is not None else None
        places = kind.places(node, edge, lengths, examples, graphs)
        names, tensors = tuple(by_name), tuple(by_name.values())
        given = Given(
            kind.space,
            Scores(),
            places,
            names,
            tensors,
            plain,
        )
        given.scores = given.scores_of(tensors)
        return given

    def _kind(self, named: dict[str, Any]) -> _Kind:
        """Return the space for these blocks, kept by the number of classes."""
        node: Any = named.get("node", next(iter(named.values()), None))
        if not isinstance(node, torch.Tensor):
            as_array(node, "node")  # raises
        # Of structures that have no classes, the last axis is as long as the batch needs.
        told = self.classes is not None or self._has_none
        classes = node.shape[-1] if node.ndim > 1 and not told else self.classes
        key = (classes if not told else None, "edge" in named)
        if key not in self._kinds:
            space, self._has_none = _space_of(self.structure, classes, key[1], told)
            if self._has_none:
                key = (None, key[1])
            self._kinds[key] = _Kind(space)
        return self._kinds[key]


def _space_of(structure: Any, classes: Any, edge: bool, told: bool) -> tuple[Any, bool]:
    """Return a space of so many classes, or of a structure that has none; which of them it is."""
    try:
        return score_space(structure, classes, edge=edge), told and classes is None
    except (TypeError, ValueError) as error:
        if told:
            raise
        try:
            return score_space(structure, edge=edge), True
        except (TypeError, ValueError):
            if str(error).startswith("classes"):
                raise  # there are none, and something else is wrong
            raise error from None


class _Kind:
    """A space and the places of its last batches."""

    def __init__(self, space: Any):
        self.space, self.tables = space, Tables(space)
        layout = space.layout
        self.blocks = {block.name: block.name for block in layout.blocks}
        self.names = list(self.blocks)
        for kind in ("node", "edge"):
            block = getattr(layout, kind)
            if block is not None:
                self.blocks.setdefault(kind, block.name)
        try:  # does a structure take the number of examples, or their sizes?
            space.pack_sizes(1)
            self.one_row = True
        except (TypeError, ValueError):
            self.one_row = False
        self._kept: OrderedDict[Any, tuple[Any, Places]] = OrderedDict()

    def places(
        self, node: torch.Tensor, edge: Any, lengths: Any, examples: Any, graphs: dict[str, Any]
    ) -> Places:
        """Return where rows lie, as it was for the last batch of these shapes and lengths."""
        lead = self._lead(node, self.space.layout.node, "node")
        edge_lead = None
        if edge is not None:
            edge_lead = self._lead(edge, self.space.layout.edge, "edge")
        sizes = None if lengths is None else _sizes(lengths)
        key: Any = (lead, edge_lead, None if sizes is None else (sizes.shape, sizes.tobytes()))
        if examples is not None:
            key = (*key, id(examples))
        if not graphs and key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        places = self._make(lead, edge_lead, sizes, examples, graphs)
        if not graphs:
            self._kept[key] = examples, places  # held, so that no other gets its id
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return places

    def _lead(self, tensor: torch.Tensor, block: Any, kind: str) -> tuple[int, ...]:
        """Return the axes before those of one row."""
        shape = tuple(tensor.shape)
        row = () if block.shape == (1,) else tuple(block.shape)
        if self.one_row and kind == "node" and not row:
            row = shape[1:]  # (examples,) and (examples, 1) are the same
            if row not in ((), (1,)):
                raise ValueError(
                    f"scores: {block.name!r} has shape {shape}, expected one number each"
                )
        if len(shape) <= len(row) or shape[len(shape) - len(row) :] != row or 0 in shape:
            raise ValueError(
                f"scores: the block {block.name!r} has shape {shape}, expected axes of examples "
                f"before those of one row, {row}"
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
                raise TypeError(f"examples is a {type(examples).__name__}, expected Examples")
            if sizes is not None or graphs:
                raise ValueError("examples tell sizes and graphs: expected no lengths beside them")
        elif self.one_row:
            examples = space.pack_sizes(lead[0], **graphs)
        elif packed and sizes is None:
            raise ValueError(
                f"scores: found one axis, {lead[0]} rows, before those of one row; expected "
                "(examples, longest) for a padded batch, or lengths= for a packed one"
            )
        else:
            examples, table_sizes = self._examples(lead, sizes, graphs)
        return Places(space, examples, lead, packed, edge_lead, self.tables, table_sizes)

    def _examples(self, lead: tuple[int, ...], sizes: Any, graphs: dict[str, Any]) -> Any:
        """Return examples of sizes, and these where they tell all about an example."""
        if sizes is not None:
            each = [tuple(s) if np.ndim(s) else s for s in sizes.tolist()]
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
    if isinstance(lengths, torch.Tensor):
        lengths = lengths.detach().cpu().numpy()
    sizes = np.asarray(lengths)
    if sizes.dtype.kind not in "iu" or sizes.ndim not in (1, 2):
        raise ValueError(
            f"lengths: found {sizes.dtype} of shape {sizes.shape}, expected an integer per example "
            "(lengths = mask.sum(1) of a mask)"
        )
    return sizes.astype(np.int64)


def as_array(tensor: torch.Tensor, name: str) -> np.ndarray:
    """Return a tensor as a contiguous array of floats, without a copy where it is one.

    Parameters
    ----------
    tensor : Tensor
    name : str
        What messages call it.

    Returns
    -------
    ndarray of float32 or float64

    Raises
    ------
    TypeError
        For what is no tensor of floats.
    """
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        kind = tensor.dtype if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise TypeError(f"scores: the block {name!r} is {kind}, expected a tensor of floats")
    tensor = tensor.detach()
    if tensor.dtype not in _DOUBLES or tensor.device.type != "cpu":
        tensor = tensor.to("cpu", tensor.dtype if tensor.dtype in _DOUBLES else torch.float32)
    array: np.ndarray = tensor.contiguous().numpy()
    return array
