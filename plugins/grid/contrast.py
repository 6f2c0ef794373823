"""Features of the edges of pictures: the difference of neighbouring pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structsolve.plugins.mrf.tables.graphs import grid_directions


def _difference(a: np.ndarray, b: np.ndarray, scale: float) -> np.ndarray:
    return np.subtract(b, a, dtype=np.float64)  # of bytes too


def _gaussian(a: np.ndarray, b: np.ndarray, scale: float) -> np.ndarray:
    squared = np.square(_difference(a, b, scale)).sum(axis=2)
    return np.exp(-squared / (2 * scale))


class Contrast(NamedTuple):
    """One kind of contrast features.

    Parameters
    ----------
    values : callable
        A function of the features at both ends of edges, and the scale.
    columns : callable
        The number of columns, given the number of features of a pixel.
    """

    values: Callable[[np.ndarray, np.ndarray, float], np.ndarray]
    columns: Callable[[int], int]


CONTRASTS = {
    "difference": Contrast(_difference, lambda n: n),
    "absolute": Contrast(lambda a, b, scale: np.abs(_difference(a, b, scale)), lambda n: n),
    "gaussian": Contrast(_gaussian, lambda n: 1),
    "ends": Contrast(lambda a, b, scale: np.concatenate([a, b], axis=2), lambda n: 2 * n),
}


def contrast_names(contrast: Any) -> tuple[str, ...]:
    """Return the kinds of contrast features, checked.

    Parameters
    ----------
    contrast : str, sequence of str, or None
        The user's argument.

    Returns
    -------
    tuple of str
        Keys of ``CONTRASTS``; empty for None.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> contrast_names("gaussian"), contrast_names(None)
    (('gaussian',), ())
    """
    if contrast is None:
        return ()
    names = (contrast,) if isinstance(contrast, str) else contrast
    known = isinstance(names, (list, tuple)) and all(
        isinstance(name, str) and name in CONTRASTS for name in names
    )
    if not known or len(set(names)) < len(names):
        raise ValueError(
            f"contrast is {contrast!r}, expected None, one of {list(CONTRASTS)}, or a list of some "
            "of them"
        )
    return tuple(names)


def n_columns(names: Sequence[str], n_features: int, n_directions: int = 1) -> int:
    """Return the number of edge features.

    Parameters
    ----------
    names : sequence of str
        Kinds of contrast.
    n_features : int
        Number of features of a pixel.
    n_directions : int, default=1
        Directions of edges with separate features.

    Returns
    -------
    int
        Including the constant.

    Examples
    --------
    >>> n_columns(["gaussian", "absolute"], 3)
    5
    """
    return n_directions * (1 + sum(CONTRASTS[name].columns(n_features) for name in names))


def mean_squared_contrast(pictures: Sequence[np.ndarray], neighbours: int) -> float:
    """Return the mean squared distance of the features of neighbouring pixels.

    Parameters
    ----------
    pictures : sequence of ndarray of shape (height, width, features)
    neighbours : {4, 8}

    Returns
    -------
    float
        1 where there are no edges, or nothing differs.

    Examples
    --------
    >>> mean_squared_contrast([np.array([[[0.0], [3.0], [4.0]]])], 4)
    5.0
    """
    return mean_of_sums(*contrast_sums(pictures, neighbours))


def contrast_sums(pictures: Sequence[np.ndarray], neighbours: int) -> tuple[float, int]:
    """Return the sum of the squared distances of neighbouring pixels, and their number.

    Parameters
    ----------
    pictures : sequence of ndarray of shape (height, width, features)
    neighbours : {4, 8}

    Returns
    -------
    total : float
    count : int
    """
    total, count = 0.0, 0
    for x in pictures:
        for here, there in grid_directions(neighbours):
            step = np.subtract(x[there], x[here], dtype=np.float64)
            total += float(np.square(step).sum())
            count += step.shape[0] * step.shape[1]
    return total, count


def mean_of_sums(total: float, count: float) -> float:
    """Return the mean of the squared distances; 1 if all pixels are alike.

    Parameters
    ----------
    total : float
    count : float

    Returns
    -------
    float
    """
    return total / count if total > 0 else 1.0


def edge_features(
    x: np.ndarray,
    names: Sequence[str],
    neighbours: int,
    by_direction: bool,
    scale: float,
    out: np.ndarray,
) -> None:
    """Write the features of the edges of one picture, in the order of ``grid_edges``.

    Parameters
    ----------
    x : ndarray of shape (height, width, features)
    names : sequence of str
        Kinds of contrast.
    neighbours : {4, 8}
    by_direction : bool
        Each direction of edges has separate columns.
    scale : float
        Squared distance at which the Gaussian is ``exp(-1/2)``.
    out : ndarray of shape (edges, columns)
        Zeros; filled.

    Examples
    --------
    >>> out = np.zeros((2, 3))
    >>> x = np.array([[[0.0], [2.0], [1.0]]])
    >>> edge_features(x, ["difference", "absolute"], 4, False, 1.0, out)
    >>> out.tolist()
    [[1.0, 2.0, 2.0], [1.0, -1.0, 1.0]]
    """
    directions = grid_directions(neighbours)
    width = out.shape[1] // len(directions) if by_direction else out.shape[1]
    row = 0
    for k, (here, there) in enumerate(directions):
        a, b = x[here], x[there]
        size, column = a.shape[0] * a.shape[1], k * width if by_direction else 0
        rows = out[row : row + size]
        rows[:, column] = 1
        column += 1
        for name in names:
            if not size:
                continue
            values = CONTRASTS[name].values(a, b, scale).reshape(size, -1)
            rows[:, column : column + values.shape[1]] = values
            column += values.shape[1]
        row += size
