"""Every structure on data of its own, and external copies of built-ins."""

import networkx as nx

TREE = {"bird": ["owl", "duck"], "mammal": ["cat", "dog"]}

NETWORK = {"demand": {"s": -1, "t": 1}, "arcs": [["s", "a"], ["s", "b"], ["a", "t"], ["b", "t"]]}


def network():
    graph = nx.DiGraph(NETWORK["arcs"])
    nx.set_node_attributes(graph, NETWORK["demand"], "demand")
    return graph


# Every shipped structure, with its parameters.  "functions" is left out, because it consists of
# three callables of the user.
CASES = {
    "chain": [{}, {"start_end": False}],
    "tree": [{}],
    "mrf": [{}, {"oracle": "trws"}],
    "factor-graph": [{}, {"factors": [(0, 1, 2), (2, 3)], "tables": "per-factor"}],
    "grid": [{"contrast": "gaussian"}],
    "multiclass": [{}],
    "multilabel": [{}, {"edges": "none"}],
    "ordinal": [{}, {"thresholds": True}],
    "permutation": [{"kind": "ranking"}, {"kind": "matching"}],
    "semi-markov": [{}, {"max_length": 2}],
    "alignment": [{}, {"kind": "many-to-one"}, {"kind": "ctc"}],
    "dependency": [{}, {"projective": True}, {"labelled": True}],
    "cky": [{}, {"grammar": True}],
    "path": [{}, {"monotone": True}],
    "flow": [{"network": network()}],
    "dag": [
        {"hierarchy": TREE, "labels": kind} for kind in ("closed", "leaf-union", "single-leaf")
    ],
}
