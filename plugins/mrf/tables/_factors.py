"""Factors of a network as scores of nodes and edges: merged; larger factors become nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Scope = tuple[int, ...]


def observed_in(
    scope: Scope, table: np.ndarray, observed: dict[int, int]
) -> tuple[Scope, np.ndarray]:
    """Return a factor over its unobserved variables."""
    left = tuple(v for v in scope if v not in observed)
    return left, table[tuple(observed.get(v, slice(None)) for v in scope)]


def merge(factors: Sequence[tuple[Scope, np.ndarray]]) -> dict[Scope, tuple[np.ndarray, int]]:
    """Multiply factors over the same variables, and into larger factors that cover them.

    Parameters
    ----------
    factors : sequence of (scope, table)
        Tables of logarithms, an axis per variable of the scope.

    Returns
    -------
    dict
        Maps a scope, variables in order, to a table and the number of its first factor.  Factors
        over one variable are not multiplied into others.
    """
    merged: dict[Scope, tuple[np.ndarray, int]] = {}
    for f, (scope, table) in enumerate(factors):
        key = tuple(sorted(scope))
        if key != scope:
            table = table.transpose(np.argsort(scope))
        if key in merged:
            before, first = merged[key]
            merged[key] = before + table, first
        else:
            merged[key] = table, f
    large = sorted((scope for scope in merged if len(scope) > 2), key=len, reverse=True)
    kept: dict[int, list[Scope]] = {v: [] for scope in large for v in scope}
    pairs = [scope for scope in merged if len(scope) == 2] if large else []
    for scope in large + pairs:
        # A cover contains each of the variables, so the shortest list of factors contains it.
        near = min((kept.get(v, []) for v in scope), key=len)
        cover = next((other for other in near if set(scope) < set(other)), None)
        if cover is not None:
            wide, first = merged[cover]
            shape = [wide.shape[i] if v in scope else 1 for i, v in enumerate(cover)]
            merged[cover] = wide + merged.pop(scope)[0].reshape(shape), first
        elif len(scope) > 2:
            for v in scope:
                kept[v].append(scope)
    return merged


def possible_entries(scope: Scope, table: np.ndarray, unary: Sequence[np.ndarray]) -> np.ndarray:
    """Return the positions of a factor's allowed entries, one a row.

    If there is none, the first is kept with its -inf, since nodes need a state.
    """
    possible = table > -np.inf
    for axis, v in enumerate(scope):
        shape = [-1 if i == axis else 1 for i in range(table.ndim)]
        possible &= (unary[v] > -np.inf).reshape(shape)
    places = np.argwhere(possible)
    return places if len(places) else np.zeros((1, table.ndim), dtype=np.intp)


def agreement(states: int, entries: np.ndarray) -> np.ndarray:
    """Return the table between a variable and a factor's entries: 0 if they agree, else -inf."""
    return np.where(np.arange(states)[:, None] == entries, 0.0, -np.inf)
