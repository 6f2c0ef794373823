"""Samples and decisions as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch

from . import operators
from .operators import Tensors, operator, parts_like


@operator("best_parts", like=parts_like)
def best_parts(own: Any, given: Any) -> Tensors:
    """Return the parts of the best labels; shared blocks have one array for each example.

    Parameters
    ----------
    own : Decision
    given : Given
        Shared blocks may have one array for each example.

    Returns
    -------
    list of Tensor
    """
    return own.best(given, given.tensors)


@operator("interpolated", like=parts_like)
def interpolated(own: Any, given: Any) -> Tensors:
    """Return the parts of the best labels, with the derivative of ``BlackboxDiff``.

    Parameters
    ----------
    own : BlackboxDiff
    given : Given

    Returns
    -------
    list of Tensor
    """
    return own.best(given, given.tensors)


def _interpolated_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *others = inputs
    ctx.many = len(tensors)
    ctx.save_for_backward(*others, *tensors, *output)


def _interpolated_backward(ctx: Any, directions: Any) -> Any:
    others, rest, k = ctx.saved_tensors[:2], ctx.saved_tensors[2:], ctx.many
    tensors, best, lam = rest[:k], rest[k:], operators.layers[ctx.layer].lam
    # A shared block has a direction for each example, so it is no longer shared.
    moved = [
        t - lam * (torch.zeros_like(b) if d is None else d)
        for t, b, d in zip(tensors, best, directions)
    ]
    there = operators.call(best_parts, ctx.layer, moved, ctx.names, *others)
    steps = [(here.detach() - away) / lam for here, away in zip(best, there)]
    answer = [s.sum(0) if s.ndim > t.ndim else s for s, t in zip(steps, tensors)]
    return None, answer, None, None, None


def best_context(ctx: Any, inputs: Any, output: Any) -> None:
    """Note the message of a derivative that decisions do not have.

    Parameters
    ----------
    ctx, inputs, output : object
    """
    ctx.why = operators.layers[inputs[0]].no_second


def _samples_like(layer: int, *rest: Any) -> torch.Tensor:
    labels = operators.labels_like(layer, *rest)
    return labels.new_empty((operators.layers[layer].n, *labels.shape))


@operator("sample", answer="Tensor", like=_samples_like)
def sample(own: Any, given: Any) -> torch.Tensor:
    """Return labels drawn by a layer ``Sample``.

    Parameters
    ----------
    own : Sample
    given : Given

    Returns
    -------
    Tensor of int64
    """
    return own.draw(given)


@operator("encoded", "Tensor labels", like=parts_like)
def encoded(own: Any, given: Any, labels: torch.Tensor) -> Tensors:
    """Return the parts of given labels, in the form of :func:`best_parts`.

    Parameters
    ----------
    own : Decision
    given : Given
    labels : Tensor

    Returns
    -------
    list of Tensor
    """
    return own.encoded(given, labels)


@operator("product", "Tensor[] parts", "Tensor", operators.number_each)
def product(own: Any, given: Any, parts: Tensors) -> torch.Tensor:
    """Return ``<scores, mu>`` of every example.

    Parameters
    ----------
    own : Decision
    given : Given
    parts : list of Tensor
        In the form of :func:`best_parts`; constants.

    Returns
    -------
    Tensor of shape (n,)
    """
    return given.product(given.tensors, parts)


def _product_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *others, parts = inputs
    ctx.many = len(tensors)
    ctx.save_for_backward(*others, *tensors, *parts)


def _product_backward(ctx: Any, factor: torch.Tensor) -> Any:
    others, rest, k = ctx.saved_tensors[:2], ctx.saved_tensors[2:], ctx.many
    operands = ctx.layer, list(rest[:k]), ctx.names, *others, list(rest[k:])
    return None, operators.call(weighed, *operands, factor), None, None, None, [None] * k


@operator("weighed", "Tensor[] parts, Tensor factor")
def weighed(own: Any, given: Any, parts: Tensors, factor: torch.Tensor) -> Tensors:
    """Return the gradient of :func:`product` by the scores.

    Parameters
    ----------
    own : Decision
    given : Given
    parts : list of Tensor
    factor : Tensor of shape (n,)
        Derivative by the products.

    Returns
    -------
    list of Tensor
    """
    return [given.weigh(name, factor, part) for name, part in zip(given.names, parts)]


class OfOperators:
    """A batch for decisions in graphs, with what :class:`structsolve.torch.layer.Given` offers.

    Parameters
    ----------
    operands : tuple
        As of :meth:`Layer.operands`.
    lengths, mask : Tensor or None
    """

    def __init__(self, operands: Any, lengths: Any, mask: Any):
        self.number, tensors, self.names = operands
        self.tensors, self.sizes = tuple(tensors), (lengths, mask)

    def call(self, operator: Any, tensors: Any, *more: Any) -> Any:
        """Call an operator on scores of the batch.

        Parameters
        ----------
        operator : CustomOpDef
        tensors : sequence of Tensor
        *more : object
            Its further arguments.

        Returns
        -------
        object
        """
        return operators.call(operator, self.number, list(tensors), self.names, *self.sizes, *more)

    def product(self, tensors: Any, parts: Any) -> torch.Tensor:
        """Return ``<scores, mu>`` of every example; see :meth:`Given.product`.

        Parameters
        ----------
        tensors, parts : sequence of Tensor

        Returns
        -------
        Tensor of shape (n,)
        """
        return self.call(product, tensors, list(parts))


operators.differentiate(
    {
        interpolated: (_interpolated_context, _interpolated_backward),
        best_parts: (best_context, operators.no_more),
        product: (_product_context, _product_backward),
        weighed: (best_context, operators.no_more),
    }
)
operators.derivatives |= dict.fromkeys((sample, encoded), (lambda *_: None, operators.no_more))
