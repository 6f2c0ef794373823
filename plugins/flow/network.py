"""Networks as users give them (networkx), checked and converted to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import check_columns
from structsolve.utils.arrays import plain_numbers

# Tolerance of flow conservation, relative to the network's unit.
TOLERANCE = 1e-6
MOST = 2**31 - 1


class Network:
    """Nodes with demands, arcs with capacities.

    Parameters
    ----------
    nodes, arcs : list
        Names; an arc is a pair of nodes.
    demand : ndarray of shape (n,)
        Inflow less outflow of each node, as in networkx: negative at sources.
    capacity : ndarray of shape (m,)
        Infinite if there is no capacity.

    Attributes
    ----------
    ends : ndarray of int32 of shape (m, 2)
    upper : ndarray of shape (m,)
        The maximum flow of each arc: its capacity; off cycles, at most the total supply.
    """

    def __init__(self, nodes: list[Any], arcs: list[Any], demand: Any, capacity: Any):
        self.nodes, self.arcs = list(nodes), [tuple(arc) for arc in arcs]
        self.n, self.m = len(self.nodes), len(self.arcs)
        number = {name: v for v, name in enumerate(self.nodes)}
        ends = [[number[u], number[v]] for u, v in self.arcs]
        self.ends = np.array(ends, dtype=np.int32).reshape(-1, 2)
        self.demand = np.asarray(demand, dtype=np.float64)
        self.capacity = np.asarray(capacity, dtype=np.float64)
        self._check()
        self.total = float(self.demand[self.demand > 0].sum())
        self.upper = self._upper()
        self._check_feasible()

    @classmethod
    def of_graph(cls, graph: Any) -> Network:
        """Read a ``networkx.DiGraph`` with node attribute "demand" and arc attribute "capacity".

        Parameters
        ----------
        graph : networkx.DiGraph

        Returns
        -------
        Network

        Raises
        ------
        ValueError
            If the graph has another type, or no flow meets its demands.
        """
        if not hasattr(graph, "adj") or not graph.is_directed() or graph.is_multigraph():
            raise ValueError(
                f"network is {type(graph).__name__}, expected a networkx.DiGraph with node "
                "attributes 'demand' and arc attributes 'capacity'"
            )
        if not graph.number_of_edges():
            raise ValueError("network has no arcs, expected at least one")
        demand = [_number(d, "demand", f"node {v!r}") for v, d in graph.nodes(data="demand")]
        capacity = [
            _number(c, "capacity", f"arc {u!r} -> {v!r}", np.inf)
            for u, v, c in graph.edges(data="capacity")
        ]
        return cls(list(graph.nodes), list(graph.edges), demand, capacity)

    def name(self, a: int) -> str:
        """Return the name of an arc, for messages.

        Parameters
        ----------
        a : int

        Returns
        -------
        str
        """
        u, v = self.arcs[a]
        return f"{u!r} -> {v!r}"

    @property
    def unit(self) -> float:
        """The total supply, or else the largest capacity; tolerances are relative to it."""
        return self.total or float(self.upper.max(initial=0)) or 1.0

    def incidence(self) -> Any:
        """Return the matrix N of ``N y = demand``.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, m)
        """
        from scipy.sparse import csr_matrix  # heavy

        arcs = np.arange(self.m)
        rows = np.concatenate([self.ends[:, 1], self.ends[:, 0]])
        signs = np.repeat([1.0, -1.0], self.m)
        return csr_matrix((signs, (rows, np.concatenate([arcs, arcs]))), shape=(self.n, self.m))

    def check_flows(self, Y: Any, n: int, what: str = "y") -> np.ndarray:
        """Return checked flows as an array.

        Parameters
        ----------
        Y : array of shape (n, m), or data frame
            Columns that are the pairs of nodes of arcs have their order.
        n : int
            Rows of X.
        what : str, default="y"
            The argument's name in messages.

        Returns
        -------
        ndarray of shape (n, m)

        Raises
        ------
        ValueError
            The message names the example and the arc or node.
        """
        if Y is None:
            raise ValueError(f"{what} is None: flow requires {what}, one row of arc flows per row")
        if hasattr(Y, "columns"):
            arcs = [(self.nodes[a], self.nodes[b]) for a, b in self.ends.tolist()]
            check_columns(Y, arcs, what=what, whose="arcs of the network")
            Y = Y.to_numpy()
        flows = plain_numbers(np.asarray(Y))
        if flows.dtype.kind not in "biuf" or flows.shape != (n, self.m):
            raise ValueError(
                f"{what}: found shape {flows.shape} and dtype {flows.dtype}, expected ({n}, "
                f"{self.m}): one flow per row of X and arc"
            )
        flows = flows.astype(np.float64)
        slack = TOLERANCE * self.unit
        with np.errstate(invalid="ignore"):
            wrong = ~((flows >= -slack) & (flows <= self.upper + slack))
        if wrong.any():
            i, a = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"example {i}, arc {self.name(a)}: {what} holds {flows[i, a]}, expected a flow "
                f"from 0 to {self.upper[a]:g}"
            )
        off = flows @ self.incidence().T - self.demand
        if (np.abs(off) > slack * 10).any():
            i, v = np.argwhere(np.abs(off) > slack * 10)[0].tolist()
            raise ValueError(
                f"example {i}, node {self.nodes[v]!r}: inflow less outflow is "
                f"{off[i, v] + self.demand[v]:g}, expected the demand, {self.demand[v]:g}; columns "
                f"are the arcs {', '.join(self.name(a) for a in range(min(self.m, 6)))}"
                f"{', ...' if self.m > 6 else ''}"
            )
        return np.clip(flows, 0, self.upper)

    def integral(self) -> Network:
        """Refuse fractional demands and capacities; return the network itself.

        Returns
        -------
        Network

        Raises
        ------
        ValueError
        """
        for values, what, names in self._amounts(self.upper):
            wrong = np.flatnonzero((values != np.rint(values)) | (np.abs(values) > MOST))
            if wrong.size:
                raise ValueError(
                    f"{names[wrong[0]]}: {what} is {values[wrong[0]]:g}, expected a whole number: "
                    "labels are whole flows (ConditionalRiskMinimizer with loss 'absolute' or "
                    "'squared' takes any)"
                )
        # The oracle counts the flow through a node in 32 bits.
        through = np.bincount(self.ends.ravel(), np.repeat(self.upper, 2), self.n)
        wide = np.flatnonzero(through + np.abs(self.demand) > MOST)
        if wide.size:
            raise ValueError(
                f"node {self.nodes[wide[0]]!r}: its arcs can carry {through[wide[0]]:g} together, "
                f"expected at most {MOST}: give arcs on cycles smaller capacities"
            )
        return self

    def check_unit(self, loss: str) -> None:
        """Refuse arcs that can carry more than 1: losses are not linear in their flow.

        Parameters
        ----------
        loss : str
            For the message.

        Raises
        ------
        ValueError
        """
        wide = np.flatnonzero(self.upper > 1)
        if wide.size:
            raise ValueError(
                f"loss {loss!r}: arc {self.name(wide[0])} can carry {self.upper[wide[0]]:g}, "
                "expected at most 1, so that the loss is linear in the flow; split it into arcs of "
                "capacity 1, or use ConditionalRiskMinimizer with loss 'absolute'"
            )

    # -- checks ---------------------------------------------------------------------------------

    def _amounts(self, capacity: np.ndarray) -> list[tuple[np.ndarray, str, list[str]]]:
        # The user's numbers; the names are for messages.
        nodes, arcs = [f"node {v!r}" for v in self.nodes], [self.name(a) for a in range(self.m)]
        return [(self.demand, "demand", nodes), (capacity, "capacity", [f"arc {a}" for a in arcs])]

    def _check(self) -> None:
        for values, what, names in self._amounts(self.capacity):
            bad = np.isnan(values) | (np.isinf(values) if what == "demand" else values < 0)
            if bad.any():
                k = int(np.flatnonzero(bad)[0])
                expected = "a finite number" if what == "demand" else "a number of at least 0"
                raise ValueError(f"{names[k]}: {what} is {values[k]}, expected {expected}")
        total = float(self.demand.sum())
        if abs(total) > 1e-9 * (1 + np.abs(self.demand).sum()):
            raise ValueError(
                f"network: demands sum to {total:g}, expected 0: the flow from nodes of negative "
                "demand must equal the flow to nodes of positive demand"
            )

    def _upper(self) -> np.ndarray:
        from scipy.sparse import csr_matrix  # heavy
        from scipy.sparse.csgraph import connected_components  # heavy

        ones = np.ones(self.m)
        graph = csr_matrix((ones, (self.ends[:, 0], self.ends[:, 1])), shape=(self.n, self.n))
        _, part = connected_components(graph, connection="strong")
        cyclic = part[self.ends[:, 0]] == part[self.ends[:, 1]]
        free = np.flatnonzero(cyclic & np.isinf(self.capacity))
        if free.size:
            raise ValueError(
                f"arc {self.name(free[0])}: it lies on a cycle and has no capacity, so flows are "
                "unbounded; give it a capacity"
            )
        self.acyclic = not cyclic.any()
        return np.where(cyclic, self.capacity, np.minimum(self.capacity, self.total))

    def _check_feasible(self) -> None:
        from scipy.optimize import linprog  # heavy

        bounds = np.column_stack([np.zeros(self.m), self.upper])
        answer = linprog(np.zeros(self.m), A_eq=self.incidence(), b_eq=self.demand, bounds=bounds)
        if answer.status == 2:
            raise ValueError(f"network: no flow meets the demands; {self._bottleneck()}")

    def _bottleneck(self) -> str:
        import networkx as nx  # heavy

        graph, source, sink = nx.DiGraph(), ("source",), ("sink",)
        graph.add_nodes_from([*range(self.n), source, sink])
        for (u, v), c in zip(self.ends.tolist(), self.upper.tolist()):
            graph.add_edge(u, v, capacity=c)
        for v, d in enumerate(self.demand.tolist()):
            if d < 0:
                graph.add_edge(source, v, capacity=-d)
            elif d > 0:
                graph.add_edge(v, sink, capacity=d)
        value, (inside, _) = nx.minimum_cut(graph, source, sink)
        names = [self.nodes[v] for v in range(self.n) if v in inside]
        if not names:
            names = [self.nodes[int(np.argmin(self.demand))]]
        return (
            f"of {self.total:g} only {value:g} can leave the nodes {names[:8]!r}: raise "
            "capacities there, or lower demands"
        )


def _number(value: Any, what: str, where: str, default: float = 0.0) -> float:
    if value is None:
        return default
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: {what} is {value!r}, expected a number") from None
