"""Losses of structures for networks: every surrogate, by its gradient at given scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..batch import value_and_gradient
from ..batch.padded import check_reduction
from ..batch.products import smooth_projection
from ..utils.positional import positional_deprecated
from . import loss_operators, operators
from ._second import Gradient, once
from .device import on_device_or_none
from .layer import Backward, Given, Layer
from .masks import as_lengths, by_position, kept_positions, known, moved_ahead, sizes_of
from .tensors import DOUBLES, refuse_transformed


class StructuredLoss(Layer):
    """A surrogate of a structure as a loss of a network's scores.

    Parameters
    ----------
    structure : str or Structure
        ``"chain"``, ``"dependency"``, ..., or an object with its settings.
    surrogate : str or surrogate object, default="margin"
        See :class:`~structsolve.StructuredSVM`: ``"crf"``, ``"sparsemap"``, ``"max-min"``,
        ``"slack"``, ``"probloss"``, ...
    loss : str or loss object, default="hamming"
        The task loss, for surrogates that use one; "auto" is the space's ``default_loss``.
    reduction : {"mean", "sum", "none"}, default="mean"
        Over the examples of a batch.
    classes : int or sequence, optional
        Number of classes, or their names; by default the length of the last axis of the node
        scores.
    oracle : str or structsolve.lp.Backend, optional
        Solver of linear programs that replaces the structure's oracle.
    n_jobs : int, optional
        Threads of native code; results do not depend on it, bit for bit.
    ignore_index : int or None, default=-100
        A label that marks missing positions of a padded batch: beyond the end of an example, or
        inside a sequence, whose other positions are then adjacent (pieces of words).

    Notes
    -----
    The layer computes the gradient along with the value, in one pass of native code on the CPU:
    tensors of other devices are copied there, and the gradient back.  Computations use double
    precision, the loss and its gradient are of the type of the scores: float32 for half precision.
    Second derivatives (``create_graph=True``) are products with the Jacobian of the marginals, for
    ``"crf"`` and ``"sparsemap"`` if the structure has it; otherwise, and for third derivatives,
    they raise NotImplementedError.  A second backward pass through one graph
    (``retain_graph=True``) computes the gradient again.

    Examples
    --------
    >>> import torch
    >>> from structsolve.torch import StructuredLoss
    >>> scores = torch.zeros(2, 3, 2, requires_grad=True)       # 2 sentences, 3 words, 2 classes
    >>> loss = StructuredLoss("chain")(scores, torch.tensor([[0, 1, 1], [1, 0, -100]]), [3, 2])
    >>> loss.item()
    2.5
    >>> loss.backward()
    >>> scores.grad[1].tolist()
    [[0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]]
    """

    @positional_deprecated
    def __init__(
        self,
        structure: Any,
        surrogate: Any = "margin",
        loss: Any = "hamming",
        reduction: str = "mean",
        classes: Any = None,
        oracle: Any = None,
        *,
        n_jobs: int | None = None,
        ignore_index: int | None = -100,
    ):
        super().__init__(structure, classes, n_jobs)
        check_reduction(reduction)
        self.surrogate, self.loss, self.oracle = surrogate, loss, oracle
        self.reduction, self.ignore_index = reduction, ignore_index

    def extra_repr(self) -> str:
        """Return the settings, for ``print``.

        Returns
        -------
        str
        """
        return f"{self.structure!r}, {self.surrogate!r}, {self.loss!r}, {self.reduction!r}"

    def forward(
        self,
        scores: Any,
        labels: Any,
        lengths: Any = None,
        examples: Any = None,
        mask: Any = None,
        **graphs: Any,
    ) -> torch.Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        scores : Tensor or dict of str to Tensor
            Node scores: of shape (examples, longest, K) for sequences, trees and graphs (padded),
            (rows, K) with ``lengths`` (packed); (examples, n + 1, n) for arcs ``[head, word - 1]``,
            (examples, height, width, K) for pictures, (examples, ...) where an example is one row.
            In a dict they are ``"node"``; others are those of ``coef_``: ``"transition"``,
            ``"start"``, ``"end"``, ``"pair"``, which all examples share, and ``"edge"``, one table
            for each edge, (edges, K, K) packed or (examples, most, K, K).  Missing ones are 0.
            What is shared may have an axis of examples first: then each has its own.
        labels : Tensor of int
            True labels as numbers of classes, of the shape of the node scores without their last
            axis, or packed.  Heads of words count from 1, 0 is the root.
        lengths : Tensor, array or list of int, optional
            Size of each example: words, nodes; (rows, columns) of tables.  Rows beyond are not
            read.
        examples : Examples, optional
            Sizes and graphs, as ``pack_sizes()`` of the structure's space makes them, or ``pack()``
            of a model's; excludes lengths.
        mask : Tensor or array of bool or int, optional
            Replaces lengths; of the shape of padded labels, nonzero at valid positions. A sequence
            may have holes: its other positions are then adjacent.
        **graphs : object
            Further arguments that the structure's ``pack_sizes()`` takes: ``trees``, ``edges``.

        Returns
        -------
        Tensor
            A number; of shape (examples,) without a reduction.

        Raises
        ------
        ValueError
            For shapes that do not fit, labels that are unknown and scores that are NaN, naming the
            example; and what the structure, loss and surrogate do not allow.
        TypeError
            For tensors of another type.
        """
        if operators.traced(scores, labels, lengths, mask):
            return self._traced(scores, labels, lengths, mask, examples, graphs)
        if examples is None and not graphs:
            here = self._on_device(self.named(scores), labels, lengths, mask)
            if here is not None:
                return here
        labels = as_labels(labels)
        node = scores.get("node") if isinstance(scores, dict) else scores
        if examples is None and by_position(labels, node):
            keep = known(labels, self.ignore_index, lengths, mask)
            if keep is not None:
                if mask is not None and lengths is not None:
                    sizes_of(keep, lengths)  # refuses both
                whole, mask = scores, None
                scores, lengths = self.without_holes(scores, keep, **graphs)
                if scores is not whole:
                    labels = labels[keep]
        given = self.read(scores, lengths, examples, mask, **graphs)
        return _Value.apply(self, given, truths(labels, given), *given.tensors)

    def _traced(
        self, scores: Any, labels: Any, lengths: Any, mask: Any, examples: Any, graphs: Any
    ) -> torch.Tensor:
        """Return the loss by operators; shapes do not depend on values."""
        number, tensors, names = self.operands(scores, examples, graphs)
        labels, lengths, mask = (as_lengths(given) for given in (labels, lengths, mask))
        blocks = names.split("\n")
        name = blocks.index("node") if "node" in blocks else -1
        node = tensors[max(name, 0)]
        positions = name >= 0 and operators.has_positions(number, node.ndim)
        if positions and by_position(labels, node):
            keep = kept_positions(labels, self.ignore_index, lengths, mask)
            if keep is not None and keep.ndim == 2 and "edge" not in blocks:
                tensors[name], labels, lengths = moved_ahead(node, labels, keep)
                mask = None
            elif keep is not None:
                lengths, mask = None, keep
        value, _ = operators.call(
            loss_operators.loss, number, tensors, names, lengths, mask, labels
        )
        return value

    def _on_device(self, named: Any, labels: Any, lengths: Any, mask: Any) -> torch.Tensor | None:
        """Return the loss computed where the scores lie, or None."""
        if self.surrogate not in ("crf", "margin") or self.loss != "hamming" or self.oracle:
            return None
        batch = on_device_or_none(self, named, lengths, mask, labels, self.ignore_index)
        if batch is None:
            return None
        if self.surrogate == "margin":
            why = f"{self.label} has no second derivatives: the surrogate is not smooth"
            batch.scores = dict(zip(batch.scores, once(why, batch.scores.values())))
        each = batch.loss(self.surrogate)
        if each is None:
            return None
        first = next(iter(named.values())).dtype
        return self.reduced(each).to(first if first in DOUBLES else torch.float32)

    def truths(self, labels: Any, given: Given) -> np.ndarray:
        """Return the true labels of a batch, one after the other; see :func:`truths`.

        Parameters
        ----------
        labels : Tensor
        given : Given

        Returns
        -------
        ndarray of int
        """
        return truths(labels, given)

    @property
    def label(self) -> str:
        """What this is, for messages."""
        name = getattr(self.surrogate, "name", self.surrogate)
        return f"structure {self.structure.name!r} with surrogate {name!r}"

    @property
    def no_third(self) -> str:
        """Message of a third derivative."""
        return f"{self.label} has no third derivatives"

    def weights(self, given: Given, factor: torch.Tensor | None = None) -> np.ndarray | None:
        """Return the factors of the examples' gradients, from the derivative of the loss.

        Parameters
        ----------
        given : Given
        factor : Tensor, optional
            A number, or one for each example without a reduction; by default 1.

        Returns
        -------
        ndarray of shape (n,), or None
            None: all are 1.
        """
        n = given.places.examples.n
        if factor is None:
            return np.full(n, 1 / n) if self.reduction == "mean" else None
        weights: np.ndarray = factor.detach().cpu().double().expand(n).numpy()
        return weights / n if self.reduction == "mean" else weights

    def reduced(self, values: torch.Tensor) -> torch.Tensor:
        """Reduce one number per example.

        Parameters
        ----------
        values : Tensor of shape (n,)

        Returns
        -------
        Tensor
        """
        return reduced(values, self.reduction)

    def projection(self, given: Given, labels: np.ndarray) -> Any:
        """Return what the Hessian is the Jacobian of.

        Parameters
        ----------
        given : Given
        labels : ndarray of int32

        Returns
        -------
        Projection

        Raises
        ------
        NotImplementedError
            If the surrogate is not smooth.
        """
        settings = self.surrogate, self.loss, self.oracle
        try:
            return smooth_projection(given.space, given.scores, labels, *settings)
        except ValueError as error:
            raise NotImplementedError(str(error)) from None

    def value(
        self, given: Given, labels: np.ndarray, weights: Any = None, each: bool = False
    ) -> Any:
        """Return values and gradient of a batch; see :func:`structsolve.batch.value_and_gradient`.

        Parameters
        ----------
        given : Given
        labels : ndarray of int
            One after the other.
        weights : ndarray of shape (n,), optional
            Factors of the gradients of the examples.
        each : bool, default=False
            Gradients of shared blocks are those of each example.

        Returns
        -------
        values : ndarray of shape (n,)
        gradient : Scores
        """
        return value_and_gradient(
            given.space,
            given.scores,
            labels,
            self.surrogate,
            self.loss,
            oracle=self.oracle,
            weights=weights,
            n_jobs=self.n_jobs,
            each=each,
        )


def reduced(values: torch.Tensor, reduction: str) -> torch.Tensor:
    """Reduce one number per example.

    Parameters
    ----------
    values : Tensor of shape (n,)
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor
    """
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()


def as_labels(labels: Any) -> np.ndarray:
    """Return true labels as an array.

    Parameters
    ----------
    labels : Tensor or array of int

    Returns
    -------
    ndarray of int

    Raises
    ------
    ValueError
        For another type.
    """
    if isinstance(labels, torch.Tensor):
        labels = labels.detach().cpu().numpy()
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iub":
        raise ValueError(f"labels: found {labels.dtype}, expected integers, the numbers of classes")
    return labels


def truths(labels: Any, given: Given) -> np.ndarray:
    """Return the true labels of a batch, one after the other.

    Parameters
    ----------
    labels : Tensor or array of int
    given : Given

    Returns
    -------
    ndarray of int

    Raises
    ------
    ValueError
        For another shape or type.
    """
    return given.places.labels(as_labels(labels)).astype(np.int32)


class _Value(Backward):
    """The value of a surrogate, computed with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, layer: StructuredLoss, given: Given, labels: np.ndarray, *tensors: torch.Tensor
    ) -> torch.Tensor:
        weights = layer.weights(given)
        values, gradient = layer.value(given, labels, weights)
        ctx.layer, ctx.given, ctx.labels = layer, given, labels
        if any(ctx.needs_input_grad):
            ctx.gradients = given.tensors_of(gradient)
            ctx.save_for_backward(*tensors)  # they must not change until they are read again
        like = tensors[0]
        if layer.reduction == "none":
            return torch.from_numpy(values).to(like.device, like.dtype)
        total = float(values.mean() if layer.reduction == "mean" else values.sum())
        return torch.scalar_tensor(total, dtype=like.dtype, device=like.device)

    @staticmethod
    def backward(ctx: Any, factor: torch.Tensor) -> Any:
        # Torch keeps an unreferenced gradient without a copy, so it is released here, and computed
        # again for a further backward pass.
        layer, given, labels = ctx.layer, ctx.given, ctx.labels
        gradients, ctx.gradients = ctx.gradients, None
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True
            known = Gradient.apply(layer, given, labels, gradients, factor, *tensors)
            return None, None, None, *known
        weights = layer.weights(given)
        if factor.ndim:
            refuse_transformed(factor, layer.label)
            first = factor[0]
            if bool((factor == first).all()):
                factor = first
            else:  # shared blocks have the sum over examples: each with its own factor
                weights, factor = layer.weights(given, factor), torch.ones(())
                gradients = None
        if gradients is None:
            _, gradient = layer.value(given, labels, weights)
            gradients = given.tensors_of(gradient)
        return None, None, None, *given.scaled(gradients, factor)
