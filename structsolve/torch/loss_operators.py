"""Losses and marginals as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch

from ..batch import marginals as batch_marginals
from ..batch.products import jacobian_product
from . import operators
from .operators import Tensors, operator, parts_like


def _loss_like(layer: int, tensors: Any, *rest: Any) -> Any:
    if operators.layers[layer].reduction == "none":
        return operators.number_each(layer, tensors, *rest), []
    return tensors[0].new_empty(()), [torch.empty_like(t) for t in tensors]


@operator("loss", "Tensor labels", "(Tensor, Tensor[])", _loss_like)
def loss(own: Any, given: Any, labels: torch.Tensor) -> tuple[torch.Tensor, Tensors]:
    """Return the value of a loss and, with a reduction, its gradients.

    Parameters
    ----------
    own : StructuredLoss
    given : Given
    labels : Tensor

    Returns
    -------
    value : Tensor
    gradients : list of Tensor
    """
    values, gradient = own.value(given, own.truths(labels, given), own.weights(given))
    like = given.tensors[0]
    value = own.reduced(torch.from_numpy(values)).to(like.device, like.dtype)
    return value, [] if own.reduction == "none" else given.tensors_of(gradient)


def _loss_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *others = inputs
    ctx.many = len(tensors)
    ctx.save_for_backward(*others, *tensors, *output[1])


def _loss_backward(ctx: Any, factor: torch.Tensor, _: Any) -> Any:
    others, rest = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
    tensors, gradients = list(rest[: ctx.many]), rest[ctx.many :]
    if gradients and not torch.is_grad_enabled():
        return None, [g * factor for g in gradients], None, None, None, None
    answer = operators.call(loss_gradient, ctx.layer, tensors, ctx.names, *others, factor)
    return None, answer, None, None, None, None


@operator("loss_gradient", "Tensor labels, Tensor factor")
def loss_gradient(own: Any, given: Any, labels: torch.Tensor, factor: torch.Tensor) -> Tensors:
    """Return gradients of a loss times the derivative by its value.

    Parameters
    ----------
    own : StructuredLoss
    given : Given
    labels : Tensor
    factor : Tensor
        Derivative by the value.

    Returns
    -------
    list of Tensor
    """
    weights = own.weights(given, factor)
    return given.tensors_of(own.value(given, own.truths(labels, given), weights)[1])


def _gradient_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *others = inputs
    ctx.save_for_backward(*others, *tensors)


def _gradient_backward(ctx: Any, directions: Any) -> Any:
    others, tensors = ctx.saved_tensors[:4], list(ctx.saved_tensors[4:])
    directions = [
        torch.zeros_like(t) if d is None else d.contiguous() for d, t in zip(directions, tensors)
    ]
    by_factor, by_tensors = operators.call(
        loss_second, ctx.layer, tensors, ctx.names, *others, directions
    )
    return None, by_tensors, None, None, None, None, by_factor


def _second_like(layer: Any, tensors: Any, *rest: Any) -> Any:
    return torch.empty_like(rest[-2]), [torch.empty_like(t) for t in tensors]


@operator(
    "loss_second",
    "Tensor labels, Tensor factor, Tensor[] directions",
    "(Tensor, Tensor[])",
    _second_like,
)
def loss_second(
    own: Any, given: Any, labels: torch.Tensor, factor: torch.Tensor, directions: Tensors
) -> tuple[torch.Tensor, Tensors]:
    """Return derivatives of ``<gradient, directions>`` by the factor and by the scores.

    Parameters
    ----------
    own : StructuredLoss
    given : Given
    labels : Tensor
    factor : Tensor
        Derivative by the value.
    directions : list of Tensor

    Returns
    -------
    by_factor : Tensor
    by_scores : list of Tensor
    """
    flat = own.truths(labels, given)
    projection = own.projection(given, flat)
    each = given.tensors_of(own.value(given, flat, None, each=True)[1])
    products = jacobian_product(
        given.space,
        given.scores,
        given.scores_of(directions),
        projection,
        weights=own.weights(given, factor),
        n_jobs=own.n_jobs,
    )
    by_factor = own.reduced(given.product(directions, each)).to(factor.dtype)
    return by_factor, given.tensors_of(products)


def _third_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.why = operators.layers[inputs[0]].no_third


@operator("marginals", like=parts_like)
def marginals(own: Any, given: Any) -> Tensors:
    """Return marginals in the form of the scores.

    Parameters
    ----------
    own : Marginals
    given : Given

    Returns
    -------
    list of Tensor
    """
    answer, _ = batch_marginals(given.space, given.scores, own.projection, n_jobs=own.n_jobs)
    return given.tensors_of(answer)


def _marginals_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *others = inputs
    ctx.like = [(o.shape, o.dtype, o.device) for o in output]
    ctx.save_for_backward(*others, *tensors)


def _marginals_backward(ctx: Any, directions: Any) -> Any:
    others, tensors = ctx.saved_tensors[:2], list(ctx.saved_tensors[2:])
    directions = [
        torch.zeros(shape, dtype=dtype, device=device) if d is None else d.contiguous()
        for d, (shape, dtype, device) in zip(directions, ctx.like)
    ]
    answer = operators.call(marginals_vjp, ctx.layer, tensors, ctx.names, *others, directions)
    return None, answer, None, None, None


@operator("marginals_vjp", "Tensor[] directions")
def marginals_vjp(own: Any, given: Any, directions: Tensors) -> Tensors:
    """Return the Jacobian of marginals times directions.

    Parameters
    ----------
    own : Marginals
    given : Given
    directions : list of Tensor

    Returns
    -------
    list of Tensor
    """
    along = given.scores_of(directions)
    answer = jacobian_product(given.space, given.scores, along, own.projection, n_jobs=own.n_jobs)
    return given.tensors_of(answer)


def _second_context(ctx: Any, inputs: Any, output: Any) -> None:
    structure = operators.layers[inputs[0]].structure.name
    ctx.why = f"Marginals of structure {structure!r} has no second derivatives"


operators.differentiate(
    {
        loss: (_loss_context, _loss_backward),
        loss_gradient: (_gradient_context, _gradient_backward),
        loss_second: (_third_context, operators.no_more),
        marginals: (_marginals_context, _marginals_backward),
        marginals_vjp: (_second_context, operators.no_more),
    }
)
