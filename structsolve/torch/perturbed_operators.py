"""Best labels under noise as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch
from torch.library import custom_op

from . import operators
from .decision_operators import best_context, best_parts
from .operators import Optional, Tensors


@custom_op("structsolve::noise", mutates_args=())
def noise(
    layer: int,
    tensors: Tensors,
    names: str,
    lengths: Optional,
    mask: Optional,
    seed: torch.Tensor,
) -> Tensors:
    """Return the noise of a layer ``PerturbedArgmax``.

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
    seed : Tensor
        A number.

    Returns
    -------
    list of Tensor
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    return own.drawn(given, seed)


@noise.register_fake
def _(layer: Any, tensors: Any, names: Any, lengths: Any, mask: Any, seed: Any) -> Any:
    samples = operators.layers[layer].n_samples
    best = best_parts(layer, tensors, names, lengths, mask)
    return [b.new_empty((samples, *b.shape)) for b in best]


@custom_op("structsolve::perturbed", mutates_args=())
def perturbed(
    layer: int,
    tensors: Tensors,
    names: str,
    lengths: Optional,
    mask: Optional,
    noise: Tensors,
) -> Tensors:
    """Return the means of the best labels' parts under noise, then the parts of each sample.

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
    noise : list of Tensor

    Returns
    -------
    list of Tensor
        Twice as many; the parts have no derivative.
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    best = own.samples(given, given.tensors, noise)
    return [*(b.mean(0) for b in best), *best]


@perturbed.register_fake
def _(layer: Any, tensors: Any, names: Any, lengths: Any, mask: Any, noise: Any) -> Any:
    return [*(torch.empty_like(z[0]) for z in noise), *map(torch.empty_like, noise)]


def _perturbed_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.layer, tensors, ctx.names, *others, noise = inputs
    ctx.many = k = len(tensors)
    ctx.save_for_backward(*others, *tensors, *noise, *output[k:])


def _perturbed_backward(ctx: Any, directions: Any) -> Any:
    others, rest, k = ctx.saved_tensors[:2], ctx.saved_tensors[2:], ctx.many
    tensors, noise, best = (list(rest[i : i + k]) for i in (0, k, 2 * k))
    directions = [
        torch.zeros_like(b[0]) if d is None else d.contiguous() for d, b in zip(directions, best)
    ]
    operands = ctx.layer, tensors, ctx.names, *others, noise, best, directions
    return None, operators.call(perturbed_vjp, *operands), None, None, None, [None] * k


@custom_op("structsolve::perturbed_vjp", mutates_args=())
def perturbed_vjp(
    layer: int,
    tensors: Tensors,
    names: str,
    lengths: Optional,
    mask: Optional,
    noise: Tensors,
    best: Tensors,
    directions: Tensors,
) -> Tensors:
    """Return the gradient by the scores, from one by the means of :func:`perturbed`.

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
    noise, best : list of Tensor
        Of each sample.
    directions : list of Tensor

    Returns
    -------
    list of Tensor
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    return own.gradients(given, noise, best, directions, tensors)


perturbed_vjp.register_fake(operators.like_scores)


operators.differentiate(
    {
        perturbed: (_perturbed_context, _perturbed_backward),
        perturbed_vjp: (best_context, operators.no_more),
    }
)
operators.derivatives[noise] = (lambda *_: None, operators.no_more)
