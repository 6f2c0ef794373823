"""Numbers of distributions as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch
from torch.library import custom_op

from . import operators
from .decoding import labels_like
from .operators import Optional, Tensors


@custom_op("structsolve::number", mutates_args=())
def number(
    layer: int,
    tensors: Tensors,
    names: str,
    lengths: Optional,
    mask: Optional,
    kind: str,
    others: Tensors,
    labels: Optional,
) -> torch.Tensor:
    """Return a number of the distribution of each example.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, between spaces.
    lengths : Tensor or None
    mask : Tensor or None
    kind : str
    others : list of Tensor
        The second scores, if any.
    labels : Tensor or None

    Returns
    -------
    Tensor of shape (n,)
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    return own.values(given, kind, labels, others)


@number.register_fake
def _(layer: Any, tensors: Any, names: Any, lengths: Any, mask: Any, *_: Any) -> Any:
    return tensors[0].new_empty((operators.many(layer, tensors, names, lengths, mask),))


def _number_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *sizes, ctx.kind, others, labels = inputs
    ctx.many = len(tensors)
    ctx.save_for_backward(*sizes, labels, *tensors, *others)


def _number_backward(ctx: Any, factor: torch.Tensor) -> Any:
    lengths, mask, labels, *both = ctx.saved_tensors
    tensors, others = both[: ctx.many], both[ctx.many :]
    operands = ctx.layer, tensors, ctx.names, lengths, mask, ctx.kind, others, labels
    answer = operators.call(number_gradient, *operands, factor)
    return None, answer[: ctx.many], None, None, None, None, answer[ctx.many :], None


@custom_op("structsolve::number_gradient", mutates_args=())
def number_gradient(
    layer: int,
    tensors: Tensors,
    names: str,
    lengths: Optional,
    mask: Optional,
    kind: str,
    others: Tensors,
    labels: Optional,
    factor: torch.Tensor,
) -> Tensors:
    """Return gradients of numbers by the scores, then by the second ones.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, between spaces.
    lengths : Tensor or None
    mask : Tensor or None
    kind : str
    others : list of Tensor
        The second scores, if any.
    labels : Tensor or None
    factor : Tensor of shape (n,)
        Derivative by the numbers.

    Returns
    -------
    list of Tensor
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    return own.gradients(given, kind, labels, others, factor)


@number_gradient.register_fake
def _(layer: Any, tensors: Any, names: Any, lengths: Any, mask: Any, *rest: Any) -> Any:
    return [torch.empty_like(t) for t in [*tensors, *rest[1]]]


def _second_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.why = operators.layers[inputs[0]].no_second(inputs[5])


@custom_op("structsolve::least_loss", mutates_args=())
def least_loss(
    layer: int, tensors: Tensors, names: str, lengths: Optional, mask: Optional
) -> torch.Tensor:
    """Return the labels of least expected loss.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores.
    names : str
        Their blocks, between spaces.
    lengths : Tensor or None
    mask : Tensor or None

    Returns
    -------
    Tensor of int64
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    return own.least(given)


least_loss.register_fake(labels_like)
operators.derivatives[least_loss] = lambda *_: None, operators.no_more
operators.differentiate(
    {
        number: (_number_context, _number_backward),
        number_gradient: (_second_context, operators.no_more),
    }
)
