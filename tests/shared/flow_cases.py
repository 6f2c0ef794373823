"""Networks for tests of flows."""

import networkx as nx


def paths_network():
    """Unit flow from s to t in an acyclic network with five paths."""
    graph = nx.DiGraph([("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t")])
    graph.add_node("s", demand=-1)
    graph.add_node("t", demand=1)
    return graph


def wide_network():
    """Two sources, two sinks, a cycle, capacities of 1."""
    graph = nx.DiGraph()
    arcs = [(0, 2), (1, 2), (1, 3), (2, 3), (3, 2), (2, 4), (3, 4), (3, 5), (0, 5)]
    graph.add_edges_from(arcs, capacity=1)
    for v, d in {0: -1, 1: -1, 4: 1, 5: 1}.items():
        graph.add_node(v, demand=d)
    return graph
