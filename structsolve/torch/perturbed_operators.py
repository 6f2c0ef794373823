"""Best labels under noise as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch

from . import operators
from .decision_operators import best_context, best_parts
from .operators import Tensors, operator


def _noise_like(layer: int, tensors: Any, names: str, lengths: Any, mask: Any, *_: Any) -> Tensors:
    samples = operators.layers[layer].n_samples
    best = best_parts(layer, tensors, names, lengths, mask)
    return [b.new_empty((samples, *b.shape)) for b in best]


@operator("noise", "Tensor seed", like=_noise_like)
def noise(own: Any, given: Any, seed: torch.Tensor) -> Tensors:
    """Return the noise of a layer ``PerturbedArgmax``.

    Parameters
    ----------
    own : PerturbedArgmax
    given : Given
    seed : Tensor
        A number.

    Returns
    -------
    list of Tensor
    """
    return own.drawn(given, seed)


def _perturbed_like(*given: Any) -> Tensors:
    noise = given[-1]
    return [*(torch.empty_like(z[0]) for z in noise), *map(torch.empty_like, noise)]


@operator("perturbed", "Tensor[] noise", like=_perturbed_like)
def perturbed(own: Any, given: Any, noise: Tensors) -> Tensors:
    """Return the means of the best labels' parts under noise, then the parts of each sample.

    Parameters
    ----------
    own : PerturbedArgmax
    given : Given
    noise : list of Tensor

    Returns
    -------
    list of Tensor
        Twice as many; the parts have no derivative.
    """
    best = own.samples(given, given.tensors, noise)
    return [*(b.mean(0) for b in best), *best]


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


@operator("perturbed_vjp", "Tensor[] noise, Tensor[] best, Tensor[] directions")
def perturbed_vjp(
    own: Any, given: Any, noise: Tensors, best: Tensors, directions: Tensors
) -> Tensors:
    """Return the gradient by the scores, from one by the means of :func:`perturbed`.

    Parameters
    ----------
    own : PerturbedArgmax
    given : Given
    noise, best : list of Tensor
        Of each sample.
    directions : list of Tensor

    Returns
    -------
    list of Tensor
    """
    return own.gradients(given, noise, best, directions, given.tensors)


operators.differentiate(
    {
        perturbed: (_perturbed_context, _perturbed_backward),
        perturbed_vjp: (best_context, operators.no_more),
    }
)
operators.derivatives[noise] = (lambda *_: None, operators.no_more)
