"""Factor graphs as graphs of pairs: a node for each larger factor, linked to its variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.part_layout import PartLayout
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.utils.arrays import padded
from structsolve.utils.memory import refuse_too_large

Scope = tuple[int, ...]

#: Maximum number of entries of a factor; and of its nodes, which may have one state, as axes.
LARGEST, WIDEST = 2**16, 31


class PairGraph(NamedTuple):
    """The graph of pairs of one example.

    Parameters
    ----------
    states : ndarray of int32 of shape (nodes,)
        Of the variables, then of the larger factors: their entries.
    ends : ndarray of int32 of shape (m, 2)
    homes : list of tuple
        Variables of each larger factor, in order.
    sources, targets : ndarray of int32 of shape (links,)
        A part of the factor graph, and a part of the graph of pairs to which its score is added.
    base : ndarray of float64
        Scores of that graph's parts without any: -inf where a factor's entry and a variable's
        state differ.
    """

    states: np.ndarray
    ends: np.ndarray
    homes: list[Scope]
    sources: np.ndarray
    targets: np.ndarray
    base: np.ndarray


def find_homes(scopes: Sequence[Scope]) -> list[Scope]:
    """Return for each factor the variables, in order, of a factor that covers its own.

    Parameters
    ----------
    scopes : sequence of tuple of int

    Returns
    -------
    list of tuple
        Factors over one variable are their own homes.

    Examples
    --------
    >>> find_homes([(2, 0, 1), (1, 2), (2, 3), (0,)])
    [(0, 1, 2), (0, 1, 2), (2, 3), (0,)]
    """
    keys = [tuple(sorted(scope)) for scope in scopes]
    kept: dict[int, list[Scope]] = {}
    covers = {key: key for key in keys}
    for key in sorted(covers, key=lambda key: (-len(key), key)):
        if len(key) < 2:
            continue
        # A cover contains each of the variables, so the shortest list of factors contains it.
        near = min((kept.get(v, []) for v in key), key=len)
        cover = next((other for other in near if set(key) < set(other)), None)
        if cover is not None:
            covers[key] = cover
        elif len(key) > 2:
            for v in key:
                kept.setdefault(v, []).append(key)
    return [covers[key] for key in keys]


@lru_cache(maxsize=64)
def entry_places(shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    """Return where each entry of a factor is in a table.

    Parameters
    ----------
    shape : tuple of int
        Numbers of states of the factor's variables.
    steps : tuple of int
        Steps of the table's axes; 0 for variables that it does not have.

    Returns
    -------
    ndarray of int of shape (entries,)

    Examples
    --------
    >>> entry_places((2, 2), (4, 1)).tolist()
    [0, 1, 4, 5]
    """
    return np.tensordot(steps, np.indices(shape), axes=1).reshape(-1)


def pair_graph(
    states: np.ndarray,
    scopes: Sequence[Scope],
    tables: Sequence[tuple[int, tuple[int, ...]]],
    rows: tuple[int, int],
    most: tuple[int, int],
) -> PairGraph:
    """Return the graph of pairs of one factor graph.

    Parameters
    ----------
    states : ndarray of int of shape (n,)
        Numbers of states of each variable.
    scopes : sequence of tuple of int
        Variables of each factor.
    tables : sequence of (int, tuple of int)
        Where the table of each factor begins in theta, and the steps of its axes.
    rows : (int, int)
        First row of nodes in theta, and doubles of a row.
    most : (int, int)
        Most states of a variable, and of a node of any example's graph of pairs.

    Returns
    -------
    PairGraph
    """
    n, row = len(states), padded(most[1])
    numbers = states.tolist()
    homes = find_homes(scopes)
    shapes = {home: tuple([numbers[v] for v in home]) for home in homes}
    large = sorted({home for home in homes if len(home) > 2})
    pairs = sorted({home for home in homes if len(home) == 2})
    number = {home: n + j for j, home in enumerate(large)}
    ends = pairs + [(v, number[home]) for home in large for v in home]
    first, step = (n + len(large)) * row, most[0] * row
    base = np.zeros(first + len(ends) * step)
    tables_of_edges = base[first:].reshape(-1, most[0], row)
    e = len(pairs)
    for home in large:
        for v, axis in zip(home, np.eye(len(home), dtype=int).tolist()):
            apart = np.arange(numbers[v])[:, None] != entry_places(shapes[home], tuple(axis))
            tables_of_edges[e, : numbers[v], : apart.shape[1]][apart] = -np.inf
            e += 1
    node, state = np.nonzero(np.arange(states.max(initial=0)) < states[:, None])
    sources = [rows[0] + node * rows[1] + state]
    targets = [node * row + state]
    edge = {pair: first + e * step for e, pair in enumerate(pairs)}
    for scope, home, (start, steps) in zip(scopes, homes, tables):
        shape = shapes[home]
        axes = tuple([steps[scope.index(v)] if v in scope else 0 for v in home])
        sources.append(start + entry_places(shape, axes))
        if len(home) == 2:
            targets.append(edge[home] + entry_places(shape, (row, 1)))
        else:
            begin = (home[0] if len(home) == 1 else number[home]) * row
            targets.append(begin + np.arange(prod(shape)))
    return PairGraph(
        np.append(states, [prod(shapes[home]) for home in large]).astype(np.int32),
        np.array(ends, dtype=np.int32).reshape(-1, 2),
        large,
        np.concatenate(sources).astype(np.int32),
        np.concatenate(targets).astype(np.int32),
        base,
    )


class FactorArrays:
    """The graphs of pairs of packed examples, and the places of factors' tables, one after another.

    Parameters
    ----------
    space : FactorGraphSpace
    layout : PartLayout

    Attributes
    ----------
    inner : PartLayout
        Of the graphs of pairs.
    states, ends : ndarray of int32
        Of these graphs.
    one_graph : bool
        All examples have the same.
    link_at, sources, targets : ndarray
        Links of graph g: ``link_at[g]`` to ``link_at[g + 1]``.
    base_at, base : ndarray
    factor_at, table_at : ndarray of intp
        Factors of graph g, and where the table of each begins in theta.
    member_at, members, steps : ndarray of intp
        Variables of each factor, and the steps of its table's axes.
    home_at, home_member_at, home_members, home_steps : ndarray of intp
        The same of the larger factors that are nodes; their entries are dense.
    most : (int, int)
        Most states of a variable, and of a node of any graph of pairs.
    """

    def __init__(self, space: Any, layout: PartLayout) -> None:
        examples = layout.examples
        fixed = space.scopes_ is not None
        self.one_graph = fixed
        sizes = np.diff(examples.offsets)
        graphs = [space.scopes_] if fixed else space.scopes_of(examples)
        self._check(space, examples, sizes, graphs, fixed)
        sizes = np.array([space.n_nodes]) if fixed else sizes
        K = len(space.classes_)
        most = K, max([K, *(space.entries(scope) for scopes in graphs for scope in scopes)])
        rows = layout.shared_size, layout.node_size

        places = {block.name: self._steps(layout, block) for block in space.layout.blocks}

        def tables(scopes: Sequence[Scope]) -> list[tuple[int, tuple[int, ...]]]:
            return [places[space.block_of(f, scope)] for f, scope in enumerate(scopes)]

        @cache
        def build(n: int, scopes: tuple[Scope, ...]) -> PairGraph:
            states = np.resize(K if space.states_ is None else space.states_, n)
            return pair_graph(states, scopes, tables(scopes), rows, most)

        row = padded(most[1])
        total = sum(
            row * (n + sum(len(s) > 2 for s in scopes)) + row * K * sum(len(s) for s in scopes)
            for n, scopes in zip(sizes.tolist(), graphs)
        )
        refuse_too_large(
            16.0 * total, "scores of larger factors and their variables", "use smaller factors"
        )
        self.most, self.made = (
            most,
            [build(n, tuple(scopes)) for n, scopes in zip(sizes.tolist(), graphs)],
        )
        self._join(self.made, graphs, tables)
        self._place(self.made, layout, most)

    def graph(self, i: int) -> PairGraph:
        """Return the graph of pairs of an example.

        Parameters
        ----------
        i : int

        Returns
        -------
        PairGraph
        """
        return self.made[0 if self.one_graph else i]

    @staticmethod
    def _steps(layout: PartLayout, block: Block) -> tuple[int, tuple[int, ...]]:
        """Return where a block's table begins in theta, and the steps of its axes."""
        steps = [1]
        for width in (*block.shape[1:-1], block.stride)[::-1] if len(block.shape) > 1 else ():
            steps.append(steps[-1] * width)
        return layout.starts[block.name], tuple(steps[::-1])

    @staticmethod
    def _check(space: Any, examples: Examples, sizes: np.ndarray, graphs: Any, fixed: bool) -> None:
        # Loops read what these say.
        if not np.array_equal(examples.label_offsets, examples.offsets):
            raise ValueError("label_offsets: found others than offsets, expected a label per node")
        if not fixed and len(graphs) != len(sizes):
            raise ValueError(f"factors: found those of {len(graphs)}, expected {len(sizes)}")
        for i, size in enumerate(sizes.tolist()):
            if fixed and size != space.n_nodes:
                raise ValueError(f"example {i}: found {size} nodes, expected {space.n_nodes}")
            if not fixed and not all(0 <= v < size for scope in graphs[i] for v in scope):
                raise ValueError(f"example {i}: found factors over nodes beyond its {size}")

    def _join(self, made: list[PairGraph], graphs: Any, tables: Any) -> None:
        def starts(lengths: Any) -> np.ndarray:
            return np.concatenate([[0], np.cumsum([*lengths])]).astype(np.intp)

        def joined(arrays: Any, dtype: Any) -> np.ndarray:
            return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)

        def flat(rows: Any) -> np.ndarray:
            return np.fromiter(chain.from_iterable(rows), dtype=np.intp)

        self.link_at = starts(len(g.sources) for g in made)
        self.sources = joined((g.sources for g in made), np.int32)
        self.targets = joined((g.targets for g in made), np.int32)
        self.base_at = starts(len(g.base) for g in made)
        self.base = joined((g.base for g in made), np.float64)
        placed = [place for scopes in graphs for place in tables(scopes)]
        self.factor_at = starts(map(len, graphs))
        self.table_at = np.array([start for start, _ in placed], dtype=np.intp)
        self.member_at = starts(len(scope) for scopes in graphs for scope in scopes)
        self.members = flat(chain.from_iterable(graphs))
        self.steps = flat(steps for _, steps in placed)
        self.home_at = starts(len(g.homes) for g in made)
        self.home_member_at = starts(len(home) for g in made for home in g.homes)
        self.home_members = flat(home for g in made for home in g.homes)
        dense = [
            np.append(np.cumprod(g.states[list(home)][:0:-1])[::-1], 1)
            for g in made
            for home in g.homes
        ]
        self.home_steps = joined(dense, np.intp)

    def _place(self, made: list[PairGraph], layout: PartLayout, most: tuple[int, int]) -> None:
        n = layout.n
        nodes = [len(g.states) for g in made] * (n if self.one_graph else 1)
        edges = [len(g.ends) for g in made] * (n if self.one_graph else 1)
        self.states = np.concatenate([np.zeros(0, np.int32), *(g.states for g in made)])
        self.ends = np.concatenate([np.zeros((0, 2), np.int32), *(g.ends for g in made)])
        blocks = [Block("node", "node", (most[1],)), Block("pair", "edge", most)]
        examples = Examples(
            np.concatenate([[0], np.cumsum(nodes)]).astype(np.int64),
            edge_offsets=np.concatenate([[0], np.cumsum(edges)]).astype(np.int64),
        )
        self.inner = PartLayout(WeightLayout(blocks, 1, 1), examples, layout.training)
