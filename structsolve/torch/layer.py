"""The base of all layers: tensors in, the batch's scores for native code, gradients out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .. import registry
from ..batch import Scores
from ..batch.padded import Batch, Batches
from . import operators
from .masks import as_lengths, as_mask, prefix, sizes_of
from .tensors import DOUBLES, as_arrays, as_tensor, checked_dtype


@dataclass
class Given:
    """Scores of one batch.

    Parameters
    ----------
    batch : Batch
        Its space, and the positions of the rows.
    scores : Scores
        Scores for native code.
    tensors : tuple of Tensor
        One for each of the batch's names, of half precision as float32.
    label : str
        Name of the layer, for messages.
    """

    batch: Batch
    scores: Scores
    tensors: tuple[torch.Tensor, ...]
    label: str

    @property
    def space(self) -> Any:
        """The space of the scores."""
        return self.batch.space

    @property
    def places(self) -> Any:
        """The positions of rows and labels."""
        return self.batch.places

    @property
    def names(self) -> tuple[str, ...]:
        """The block of each tensor."""
        return self.batch.names

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.places.examples.n

    @property
    def shared(self) -> list[bool]:
        """Whether all examples share each tensor."""
        return list(map(operators.one_for_all, self.batch.blocks, self.tensors))

    def tensors_of(self, answer: Any) -> list[torch.Tensor]:
        """Return arrays in the form of the scores as tensors, in the order of the given ones.

        Parameters
        ----------
        answer : Scores
            Gradients, or marginals with shared blocks for each example.

        Returns
        -------
        list of Tensor
            On the devices and of the types of ``tensors``.
        """
        arrays = self.batch.arrays(answer, [like.shape for like in self.tensors])
        return [as_tensor(array, like) for array, like in zip(arrays, self.tensors)]

    def scaled(self, gradients: Any, factor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return gradients times a number.

        Parameters
        ----------
        gradients : sequence of Tensor
        factor : Tensor
            A number.

        Returns
        -------
        tuple of Tensor
        """
        if factor.device.type != "cpu":
            return tuple(g * factor for g in gradients)
        number = float(factor)
        # Like backward() of the loss.
        return tuple(gradients if number == 1 else [g * number for g in gradients])

    def scores_of(self, tensors: Any) -> Scores:
        """Return tensors in the form of the scores as scores for native code.

        Parameters
        ----------
        tensors : sequence of Tensor
            In the order of ``names``; shared blocks may have one array for each example.

        Returns
        -------
        Scores
        """
        return self.batch.scores(as_arrays(tensors, self.label))

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
            # Missing parts count 0, even with scores of -inf or values beyond the end.
            each = torch.where(part != 0, part * tensor, torch.zeros_like(part))
            example = self._example_of(name)
            if example is None:
                total = total + each.reshape(n, -1).sum(1)
            else:
                rows = each.reshape(len(example), math.prod(each.shape[1:])).sum(1)
                total = total + rows.new_zeros(n).index_add(0, example.to(rows.device), rows)
        return total

    def weigh(self, name: str, weights: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor times a weight for each example; shared blocks are summed.

        Parameters
        ----------
        name : str
            Name of the block.
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
            return weighed.sum(0) if self.shared[self.names.index(name)] else weighed
        inside = self.places.inside(block.kind)
        if inside is None:
            return weighed
        mask = torch.from_numpy(inside).to(weighed)
        return weighed * mask.reshape(*mask.shape, *[1] * (weighed.ndim - mask.ndim))

    def read_alone(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor with 0 at entries that no part reads.

        Parameters
        ----------
        name : str
            Name of the block.
        tensor : Tensor
            Its last axes are those of the block.

        Returns
        -------
        Tensor
        """
        unread = self.space.layout.block(name).unread_cells()
        if not unread.any():
            return tensor
        return tensor.masked_fill(torch.from_numpy(unread).to(tensor.device), 0)

    def _example_of(self, name: str) -> torch.Tensor | None:
        """Return the example of each row of a packed block; None for blocks by example."""
        offsets = self.places.packed_offsets(self.space.layout.block(name).kind)
        if offsets is None:
            return None
        return torch.repeat_interleave(torch.from_numpy(np.diff(offsets)))

    def labels(self, flat: np.ndarray) -> torch.Tensor:
        """Return labels as a tensor in the users' form.

        Parameters
        ----------
        flat : ndarray of int32 of shape (..., size of all labels)

        Returns
        -------
        Tensor of int64
        """
        return torch.from_numpy(self.places.pad_labels(flat)).to(self.tensors[0].device)


class Layer(torch.nn.Module):
    """A module over a structure, without parameters; caches by shape.

    Parameters
    ----------
    structure : str or Structure
    classes : int or sequence, optional
        Number of classes, or their names; by default the length of the last axis of the node
        scores.
    n_jobs : int, optional
        Threads of native code; results do not depend on it, bit for bit.
    """

    def __init__(self, structure: Any, classes: Any = None, n_jobs: int | None = None):
        super().__init__()
        structure = registry.get_structure(structure)
        self.structure, self.classes, self.n_jobs = structure, classes, n_jobs
        self._batches = Batches(structure, classes)
        self._number = operators.numbered(self)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._number = operators.numbered(self)  # copies are other layers

    def named(self, scores: Any) -> dict[str, Any]:
        """Return scores by block.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor

        Returns
        -------
        dict of str to Tensor
        """
        return scores if isinstance(scores, dict) else {"node": scores}

    def in_form(self, scores: Any, tensors: Any) -> Any:
        """Return tensors in the form and types of scores: one tensor, or a dict by block.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
        tensors : sequence of Tensor

        Returns
        -------
        Tensor or dict of str to Tensor
        """
        named = self.named(scores)
        own = {name: t.to(named[name].dtype) for name, t in zip(named, tensors)}
        return own if isinstance(scores, dict) else own["node"]

    def operands(self, scores: Any, examples: Any, graphs: Any) -> tuple[int, Any, str]:
        """Return the first arguments of operators.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
        examples, graphs : object
            Must be empty.

        Returns
        -------
        number : int
        tensors : list of Tensor
        names : str

        Raises
        ------
        NotImplementedError
            For examples and graphs.
        """
        if examples is not None or graphs:
            raise NotImplementedError(
                f"{self.label}: torch.compile, torch.export and torch.func take no examples= and "
                "no graphs; call the layer outside of them (torch.compiler.disable)"
            )
        named = self.named(scores)
        tensors = [t if t.dtype in DOUBLES else t.float() for t in named.values()]
        return self._number, tensors, "\n".join(named)

    def call(
        self,
        operator: Any,
        scores: Any,
        lengths: Any,
        mask: Any,
        examples: Any,
        graphs: Any,
        *more: Any,
    ) -> Any:
        """Call an operator on a batch, for graphs.

        Parameters
        ----------
        operator : CustomOpDef
        scores, lengths, mask, examples
            See :class:`StructuredLoss`.
        graphs : dict
        *more : object
            What the operator takes besides.

        Returns
        -------
        object
        """
        operands = self.operands(scores, examples, graphs)
        return operators.call(operator, *operands, as_lengths(lengths), as_lengths(mask), *more)

    def extra_repr(self) -> str:
        """Return the settings, for ``print``.

        Returns
        -------
        str
        """
        return f"{self.structure!r}"

    def read(
        self,
        scores: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> Given:
        """Check a batch of scores.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            See :class:`StructuredLoss`, also for the others.
        lengths : Tensor, array or list of int, optional
        examples : Examples, optional
        mask : Tensor or array, optional
        **graphs : object

        Returns
        -------
        Given

        Raises
        ------
        ValueError, TypeError
            If they do not fit.
        """
        named = self.named(scores)
        dtypes = tuple(checked_dtype(tensor, name) for name, tensor in named.items())
        # Autograd rounds the gradients of half precision, which come back in single precision.
        tensors = tuple(
            tensor if dtype in DOUBLES else tensor.float()
            for tensor, dtype in zip(named.values(), dtypes)
        )
        arrays = as_arrays(tensors, self.label)
        shapes = {name: tuple(tensor.shape) for name, tensor in named.items()}
        if mask is not None:
            lengths = self.sizes(as_mask(mask), shapes, lengths)
        elif isinstance(lengths, torch.Tensor):
            lengths = lengths.detach().cpu().numpy()
        batch = self._batches.read(shapes, lengths, examples, **graphs)
        return Given(batch, batch.scores(arrays), tensors, self.label)

    @property
    def label(self) -> str:
        """Name for messages."""
        return f"{type(self).__name__} of structure {self.structure.name!r}"

    def sizes(
        self, keep: np.ndarray, shapes: dict[str, tuple[int, ...]], lengths: Any = None
    ) -> np.ndarray:
        """Return the sizes of examples given by a mask, which has the axes of the node scores.

        Parameters
        ----------
        keep : ndarray of bool
        shapes : dict of str to tuple of int
            Of the scores.
        lengths : object
            Other sources of sizes.

        Returns
        -------
        ndarray of int

        Raises
        ------
        ValueError
        """
        lead = self._batches.lead(shapes)
        if lead is not None and len(lead) == keep.ndim and lead != keep.shape:
            raise ValueError(f"mask: found the shape {keep.shape}, expected {lead}, as scores have")
        return sizes_of(keep, lengths)

    def without_holes(self, scores: Any, keep: np.ndarray, **graphs: Any) -> tuple[Any, np.ndarray]:
        """Return a padded batch without some positions, packed if there are holes.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
        keep : ndarray of bool
            The valid positions.
        **graphs : object
            Must be empty: the edges of the remaining positions would be unknown.

        Returns
        -------
        scores : Tensor or dict of str to Tensor
        lengths : ndarray of int

        Raises
        ------
        ValueError
            If there are holes and the structure is no sequence of positions.
        """
        named = scores if isinstance(scores, dict) else {"node": scores}
        for name, tensor in named.items():
            checked_dtype(tensor, name)
        shapes = {name: tuple(tensor.shape) for name, tensor in named.items()}
        if keep.ndim != 2 or np.array_equal(keep, prefix(keep)):
            return scores, self.sizes(keep, shapes)
        blocks = self._batches.layout(shapes)
        rows = [name for name in named if name in ("node", blocks.node.name)]
        more = [b.name for b in blocks.blocks if b.kind == "edge" and b.name in {*named, "edge"}]
        if graphs or more or not rows or tuple(named[rows[0]].shape[:2]) != keep.shape:
            return scores, self.sizes(keep, shapes)  # whose error names the example
        node = named[rows[0]]
        left = node[torch.from_numpy(keep).to(node.device)]
        packed = left if named is not scores else {**named, rows[0]: left}
        return packed, keep.sum(1)


class Backward(torch.autograd.Function):
    """Base of layers' computations, with first and second derivatives in backward mode."""

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        """Refuse forward mode, naming the layer.

        Parameters
        ----------
        ctx : object
            Torch's context, with the layer.
        """
        raise NotImplementedError(
            f"{ctx.layer.label} has no derivatives forward (torch.autograd.forward_ad); use "
            "torch.autograd.functional.jvp, which goes backward twice"
        )
