"""Maps of terrain with cheapest paths: pictures like those of a strategy game."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.plugins.path.graphs import grid_steps

# Cost of a cell of each terrain: grass, sand, forest, rock, water.
COSTS = np.array([1.0, 1.7, 3.1, 6.3, 9.2])


def make_terrain_maps(
    n_maps: int = 100,
    shape: tuple[int, int] = (12, 12),
    *,
    pixels: int = 4,
    noise: float = 0.1,
    monotone: bool = False,
    random_state: Any = 0,
) -> tuple[np.ndarray, list[list[tuple[int, int]]], np.ndarray]:
    """Return pictures of terrain, the cheapest paths through them, and the costs of their cells.

    Every cell of a map has a terrain, in smooth patches, and shows ``pixels x pixels`` pixels of
    its texture with noise.  Paths lead from the first cell to the last by 8 neighbours and have the
    least total cost, both ends included.

    Parameters
    ----------
    n_maps : int, default=100
    shape : (int, int), default=(12, 12)
        Height and width of the maps, in cells.
    pixels : int, default=4
        Height and width of a cell's picture.
    noise : float, default=.1
        Standard deviation of the noise of pixels, whose colours are from 0 to 1.
    monotone : bool, default=False
        Paths only go right, down, or both at once.
    random_state : int or Generator

    Returns
    -------
    X : ndarray of shape (n_maps, height, width, 3 * pixels ** 2)
        Colours of the pixels of each cell, from 0 to 1.
    Y : list of list of (int, int)
        Cells of the cheapest paths.
    costs : ndarray of shape (n_maps, height, width)

    Examples
    --------
    >>> from structsolve.plugins.path import make_terrain_maps
    >>> X, Y, costs = make_terrain_maps(3, (4, 5), pixels=2)
    >>> X.shape, Y[0][0], Y[0][-1], costs.shape
    ((3, 4, 5, 12), (0, 0), (3, 4), (3, 4, 5))
    """
    from scipy.ndimage import gaussian_filter  # heavy

    rng = np.random.default_rng(random_state)
    textures = rng.random((len(COSTS), 3 * pixels**2))
    height = gaussian_filter(rng.normal(size=(n_maps, *shape)), (0, 1.5, 1.5), mode="nearest")
    # Every map has about as much of each terrain.
    rank = height.reshape(n_maps, -1).argsort(axis=1).argsort(axis=1).reshape(height.shape)
    terrain = rank * len(COSTS) // rank[0].size
    X = textures[terrain] + noise * rng.normal(size=(*terrain.shape, textures.shape[1]))
    table = COSTS[terrain]
    return X.clip(0, 1), [cheapest(one, monotone) for one in table], table


def cheapest(costs: np.ndarray, monotone: bool = False) -> list[tuple[int, int]]:
    """Return the cheapest path through a grid, from the first cell to the last by 8 neighbours.

    Parameters
    ----------
    costs : ndarray of shape (height, width)
        At least 0.
    monotone : bool, default=False

    Returns
    -------
    list of (int, int)
    """
    from scipy import sparse  # heavy
    from scipy.sparse import csgraph

    tails, heads = grid_steps(*costs.shape, 8, monotone)
    flat = costs.ravel()
    graph = sparse.csr_matrix((flat[heads], (tails, heads)), (flat.size, flat.size))
    before = csgraph.dijkstra(graph, indices=0, return_predecessors=True)[1]
    path = [flat.size - 1]
    while path[-1]:
        path.append(before[path[-1]])
    rows, columns = np.unravel_index(path[::-1], costs.shape)
    return list(zip(rows.tolist(), columns.tolist()))
