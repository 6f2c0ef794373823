"""Samples and interpolated decisions as custom operators, beside those of ``operators``."""

from __future__ import annotations

from typing import Any

import torch
from torch.library import custom_op

from ..batch import encode
from ..batch import samples as batch_samples
from ..batch.answers import best_labels
from . import operators
from .operators import Optional, Tensors


@custom_op("structsolve::best_parts", mutates_args=())
def best_parts(
    layer: int, tensors: Tensors, names: str, lengths: Optional, mask: Optional
) -> Tensors:
    """Return the parts of the best labels; shared blocks have one array for each example.

    Parameters
    ----------
    layer : int
        Number of the layer.
    tensors : list of Tensor
        Scores; shared blocks may have one array for each example.
    names : str
        Their blocks, between spaces.
    lengths : Tensor or None
    mask : Tensor or None

    Returns
    -------
    list of Tensor
    """
    own, given = operators.read(layer, tensors, names, lengths, mask)
    labels = best_labels(given.space, given.scores, oracle=own.oracle, n_jobs=own.n_jobs)
    return given.tensors_of(encode(given.space, given.scores, labels))


@best_parts.register_fake
def _(layer: Any, tensors: Any, names: Any, lengths: Any, mask: Any) -> Any:
    n = operators.many(layer, tensors, names, lengths if mask is None else mask)
    blocks = operators.blocks(layer, tensors, names)
    return [
        t.new_empty((n, *t.shape))
        if block.kind == "shared" and t.ndim == len(block.shape)
        else torch.empty_like(t)
        for t, block in zip(tensors, blocks)
    ]


@custom_op("structsolve::interpolated", mutates_args=())
def interpolated(
    layer: int, tensors: Tensors, names: str, lengths: Optional, mask: Optional
) -> Tensors:
    """Return the parts of the best labels, with the derivative of ``BlackboxDiff``.

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
    list of Tensor
    """
    answer: Tensors = best_parts(layer, tensors, names, lengths, mask)
    return answer


@interpolated.register_fake
def _(layer: Any, tensors: Any, names: Any, lengths: Any, mask: Any) -> Any:
    return best_parts(layer, tensors, names, lengths, mask)


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


def _best_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.why = operators.layers[inputs[0]].no_second


@custom_op("structsolve::sample", mutates_args=())
def sample(
    layer: int, tensors: Tensors, names: str, lengths: Optional, mask: Optional
) -> torch.Tensor:
    """Return labels drawn by a layer ``Sample``.

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
    drawn = batch_samples(given.space, given.scores, own.n, own.random_state, n_jobs=own.n_jobs)
    return given.labels(drawn)


operators.derivatives |= {
    interpolated: (_interpolated_context, _interpolated_backward),
    best_parts: (_best_context, operators.no_more),
    sample: (lambda *_: None, operators.no_more),
}
for _operator in (interpolated, best_parts):
    _context, _backward = operators.derivatives[_operator]
    _operator.register_autograd(_backward, setup_context=_context)
