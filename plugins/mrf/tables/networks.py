"""Networkx graphs as examples: attributes of nodes and edges, labels and answers by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import check_named
from structsolve.examples.packed import Examples


def is_network(x: Any) -> bool:
    """Return whether an example is a networkx graph.

    Parameters
    ----------
    x : object

    Returns
    -------
    bool
    """
    return hasattr(x, "nodes") and hasattr(x, "edges") and not isinstance(x, tuple)


def check_attributes(structure: Any) -> None:
    """Refuse parameters that are not names of attributes.

    Parameters
    ----------
    structure : Structure
        With ``node_features``, ``edge_features`` and ``node_labels``.

    Raises
    ------
    ValueError
    """
    for name in ("node_features", "edge_features"):
        value = getattr(structure, name)
        if not isinstance(value, str) and not (
            isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value)
        ):
            raise ValueError(
                f"{name} is {value!r}, expected the name of an attribute, or a list of names"
            )
    if not isinstance(structure.node_labels, str):
        raise ValueError(
            f"node_labels is {structure.node_labels!r}, expected the name of an attribute"
        )


def from_networkx(graph: Any, i: int, structure: Any, with_features: bool) -> dict[str, Any]:
    """Read a networkx graph whose nodes and edges have features as attributes.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
    i : int
        The example, for messages.
    structure : Structure
        With ``node_features`` and ``edge_features``, names of attributes.
    with_features : bool
        Edges have features too.

    Returns
    -------
    dict
        ``"node_features"``, ``"edges"`` (numbers of nodes), ``"names"`` (of nodes), and
        ``"edge_features"`` if ``with_features``.

    Raises
    ------
    ValueError
        If the graph is empty, lacks an attribute, or has one with varying shapes.
    """
    number = {node: v for v, node in enumerate(graph.nodes)}
    if not number:
        raise ValueError(f"X, example {i}: found a graph without nodes, expected at least one")
    edges = list(graph.edges(data=True))  # parallel ones one by one
    alone = {node for node, degree in graph.degree if degree == 0}
    nodes = (
        (f"node {v!r}" + " (which has no edge)" * (v in alone), data)
        for v, data in graph.nodes(data=True)
    )
    arrays = {
        "names": list(graph.nodes),
        "node_features": _features(nodes, i, structure, "node_features"),
        "edges": np.array([(number[u], number[v]) for u, v, _ in edges]).reshape(-1, 2),
    }
    if with_features:
        named = ((f"edge ({u!r}, {v!r})", data) for u, v, data in edges)
        arrays["edge_features"] = _features(named, i, structure, "edge_features")
    return arrays


def _features(items: Any, i: int, structure: Any, parameter: str) -> np.ndarray:
    """Return a row for each node or edge: its attributes, concatenated."""
    given = getattr(structure, parameter)
    names = [given] if isinstance(given, str) else list(given)
    rows: list[np.ndarray] = []
    first: list[tuple[int, ...]] = []
    for what, data in items:
        pieces = []
        for name in names:
            if name not in data:
                raise ValueError(
                    f"X, example {i}: {what} has no attribute {name!r}, expected numbers; it has "
                    f"{sorted(map(str, data))}, and {parameter}= says which to take"
                )
            pieces.append(np.atleast_1d(data[name]))
        shapes = [piece.shape for piece in pieces]
        first = first or shapes
        for name, piece, expected in zip(names, pieces, first):
            if piece.ndim != 1 or piece.dtype.kind not in "biuf":
                raise ValueError(
                    f"X, example {i}: attribute {name!r} of {what} is {data[name]!r}, expected a "
                    "number or a vector of numbers"
                )
            if piece.shape != expected:
                raise ValueError(
                    f"X, example {i}: attribute {name!r} of {what} has {len(piece)} numbers, "
                    f"expected {expected[0]} as before it"
                )
        rows.append(np.concatenate(pieces))
    return np.array(rows)


def name_nodes(examples: Examples, names: list[list[Any] | None]) -> None:
    """Keep the names of nodes if some examples are networkx graphs.

    Parameters
    ----------
    examples : Examples
        Changed.
    names : list
        Names of the nodes of each example, None for an example of arrays.
    """
    if any(one is not None for one in names):
        examples.topology["names"] = names


def is_labelled_by_node(Y: Any) -> bool:
    """Return whether some labels are dicts or networkx graphs.

    Parameters
    ----------
    Y : labels as users give them

    Returns
    -------
    bool
    """
    return isinstance(Y, (list, tuple)) and any(isinstance(y, dict) or is_network(y) for y in Y)


def in_order(Y: Any, examples: Examples, attribute: str) -> Any:
    """Return labels as sequences, those given as dicts or graphs in the order of the nodes.

    Parameters
    ----------
    Y : labels as users give them
    examples : Examples
    attribute : str
        Attribute of nodes, where labels are networkx graphs.

    Returns
    -------
    object
        ``Y`` itself if it has neither dicts nor graphs.

    Raises
    ------
    ValueError
        The message names the example and the node.
    """
    if not isinstance(Y, (list, tuple)) or len(Y) != examples.n:
        return Y
    known = examples.topology.get("names", [None] * examples.n)
    for i, y in enumerate(Y):
        check_named(y, known[i], None, f"y, example {i}", "nodes of X")
    if not is_labelled_by_node(Y):
        return Y
    return [
        _sequence(y, known[i], i, attribute) if isinstance(y, dict) or is_network(y) else y
        for i, y in enumerate(Y)
    ]


def _sequence(y: Any, names: list[Any] | None, i: int, attribute: str) -> list[Any]:
    if names is None:
        raise ValueError(
            f"y, example {i}: labels by node are for examples that are networkx graphs; expected "
            "a sequence of labels"
        )
    by_attribute = not isinstance(y, dict)
    labels = []
    for v in names:
        has_label = v in (y.nodes if by_attribute else y)
        if has_label and by_attribute and attribute not in y.nodes[v]:
            raise ValueError(
                f"y, example {i}: node {v!r} has no attribute {attribute!r}; it has "
                f"{sorted(map(str, y.nodes[v]))}, and node_labels= says which to take"
            )
        if not has_label:
            raise ValueError(f"y, example {i}: node {v!r} of X has no label")
        labels.append(y.nodes[v][attribute] if by_attribute else y[v])
    more = [v for v in (y.nodes if by_attribute else y) if v not in set(names)]
    if more:
        raise ValueError(f"y, example {i}: found a label of {more[0]!r}, which is no node of X")
    return labels


def by_node(labels: Any, examples: Examples) -> Any:
    """Return labels of all examples, as dicts by node for examples that came as networkx graphs.

    Parameters
    ----------
    labels : list of ndarray
    examples : Examples

    Returns
    -------
    list
    """
    known = examples.topology.get("names")
    if known is None:
        return labels
    return [_named(label, names) for label, names in zip(labels, known)]


def by_node_one(label: np.ndarray, examples: Examples, i: int) -> Any:
    """Return one example's labels, as :func:`by_node`.

    Parameters
    ----------
    label : ndarray
    examples : Examples
    i : int

    Returns
    -------
    ndarray or dict
    """
    known = examples.topology.get("names")
    return label if known is None else _named(label, known[i])


def _named(label: np.ndarray, names: list[Any] | None) -> Any:
    return label if names is None else dict(zip(names, label.tolist()))
