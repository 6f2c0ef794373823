"""Numbers of distributions as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch

from . import operators
from .operators import Tensors, operator

_MORE = "str kind, Tensor[] others, Tensor? labels"


@operator("number", _MORE, "Tensor", operators.number_each)
def number(own: Any, given: Any, kind: str, others: Tensors, labels: Any) -> torch.Tensor:
    """Return a number of the distribution of each example.

    Parameters
    ----------
    own : Distribution
    given : Given
    kind : str
    others : list of Tensor
        The second scores, if any.
    labels : Tensor or None

    Returns
    -------
    Tensor of shape (n,)
    """
    return own.values(given, kind, labels, others)


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


def _gradients_like(layer: int, tensors: Any, *rest: Any) -> Tensors:
    return [torch.empty_like(t) for t in [*tensors, *rest[-3]]]


@operator("number_gradient", f"{_MORE}, Tensor factor", like=_gradients_like)
def number_gradient(
    own: Any, given: Any, kind: str, others: Tensors, labels: Any, factor: torch.Tensor
) -> Tensors:
    """Return gradients of numbers by the scores, then by the second ones.

    Parameters
    ----------
    own : Distribution
    given : Given
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
    return own.gradients(given, kind, labels, others, factor)


def _second_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.why = operators.layers[inputs[0]].no_second(inputs[5])


@operator("least_loss", answer="Tensor", like=operators.labels_like)
def least_loss(own: Any, given: Any) -> torch.Tensor:
    """Return the labels of least expected loss.

    Parameters
    ----------
    own : Distribution
    given : Given

    Returns
    -------
    Tensor of int64
    """
    return own.least(given)


operators.derivatives[least_loss] = lambda *_: None, operators.no_more
operators.differentiate(
    {
        number: (_number_context, _number_backward),
        number_gradient: (_second_context, operators.no_more),
    }
)
