"""Chains by torch operations, for layers whose scores lie on a GPU: a scan over time for a batch.

Scores are dicts by block, 0 beyond the end of a chain: node (n, longest, K), edge (n, longest - 1,
K, K); shared blocks may have one array for each example.  Layers import this module, which imports
torch; listing structures does not.
"""

from __future__ import annotations

from typing import Any

import torch

#: From this many pairs of labels per position on, over the batch, the device does not idle: a step
#: is some 14 small kernels, of some 5 us each, and compiled code takes about 1 ns per pair.
PAIRS = 2**17


def pays(shape: tuple[int, ...]) -> bool:
    """Return whether a batch is large enough for a device.

    Parameters
    ----------
    shape : tuple (n, longest, K)
        Of its node scores.

    Returns
    -------
    bool
    """
    return shape[0] * shape[2] ** 2 >= PAIRS


def log_partition(scores: dict[str, torch.Tensor], sizes: torch.Tensor) -> torch.Tensor:
    """Return ``log sum_y exp(score of y)`` of every chain.

    Parameters
    ----------
    scores : dict of str to Tensor
    sizes : Tensor of int of shape (n,)

    Returns
    -------
    Tensor of shape (n,)
        Below -1e29 if every label is forbidden.
    """
    # An exponential of -inf - -inf has no derivative.
    scores = {name: tensor.clamp(min=-1e30) for name, tensor in scores.items()}
    alpha = _first(scores)
    for v in range(1, scores["node"].shape[1]):
        step = torch.logsumexp(alpha[:, :, None] + _table(scores, v), 1) + scores["node"][:, v]
        alpha = torch.where((v < sizes)[:, None], step, alpha)
    return torch.logsumexp(_last(scores, alpha), 1)


def best(scores: dict[str, torch.Tensor], sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the best labels; ties go to the smallest last state, then the smallest before it.

    Parameters
    ----------
    scores : dict of str to Tensor
    sizes : Tensor of int of shape (n,)

    Returns
    -------
    labels : Tensor of int of shape (n, longest)
    values : Tensor of shape (n,)
    """
    alpha, before = _first(scores), []
    own = torch.arange(alpha.shape[1], device=alpha.device)
    for v in range(1, scores["node"].shape[1]):
        # The sums of compiled code, in its order; max() takes the first of equal ones.
        every = alpha[:, :, None] + _table(scores, v) + scores["node"][:, v, None]
        top, state = every.max(1)
        inside = (v < sizes)[:, None]
        alpha = torch.where(inside, top, alpha)
        before.append(torch.where(inside, state, own))
    values, state = _last(scores, alpha).max(1)
    labels = [state]
    for states in reversed(before):
        state = states.gather(1, state[:, None])[:, 0]
        labels.append(state)
    return torch.stack(labels[::-1], 1), values


def score(
    scores: dict[str, torch.Tensor], labels: torch.Tensor, sizes: torch.Tensor
) -> torch.Tensor:
    """Return the score of one label of every chain.

    Parameters
    ----------
    scores : dict of str to Tensor
    labels : Tensor of int of shape (n, longest)
        States, also beyond the end.
    sizes : Tensor of int of shape (n,)

    Returns
    -------
    Tensor of shape (n,)
    """
    total = scores["node"].gather(2, labels[:, :, None]).sum((1, 2))
    n, longest = labels.shape
    row = torch.arange(n, device=labels.device)
    later = torch.arange(1, longest, device=labels.device)
    before, after = labels[:, :-1], labels[:, 1:]
    if (pairs := scores.get("transition")) is not None:
        each = pairs[before, after] if pairs.ndim == 2 else pairs[row[:, None], before, after]
        total = total + torch.where(later < sizes[:, None], each, 0).sum(1)
    if (edge := scores.get("edge")) is not None:
        total = total + edge[row[:, None], later - 1, before, after].sum(1)
    ends = {"start": labels[:, 0], "end": labels[row, sizes - 1]}
    for name, state in ends.items():
        if (own := scores.get(name)) is not None:
            total = total + (own[state] if own.ndim == 1 else own[row, state])
    return total


def _first(scores: dict[str, torch.Tensor]) -> torch.Tensor:
    start = scores.get("start")
    return scores["node"][:, 0] if start is None else scores["node"][:, 0] + start


def _last(scores: dict[str, torch.Tensor], alpha: torch.Tensor) -> torch.Tensor:
    end = scores.get("end")
    return alpha if end is None else alpha + end


def _table(scores: dict[str, torch.Tensor], v: int) -> Any:
    """Return the scores of pairs of states at positions v - 1 and v."""
    pairs, edge = scores.get("transition"), scores.get("edge")
    if edge is None:
        k = scores["node"].shape[2]
        return scores["node"].new_zeros(k, k) if pairs is None else pairs
    return edge[:, v - 1] if pairs is None else pairs + edge[:, v - 1]
