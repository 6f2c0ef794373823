"""Kernels over outputs, for additive models of conditional risk that couple parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from structsolve.examples.given import check_named


def hierarchy_kernel(graph: Any, nodes: Any = None, kind: str = "normalized") -> np.ndarray:
    """Return a kernel over the nodes of a graph in which neighbours are similar.

    Goh and Jaillet (2017, section 5) take 1 for a node and for its neighbours, else 0. That matrix
    is no kernel: for a star with two leaves it has the eigenvalue ``1 - sqrt(2)``, and the least
    squares problem (13) has no minimum. This function makes a kernel from it in two ways.

    Parameters
    ----------
    graph : networkx graph, or dict of children by node
        Directions of edges do not count.
    nodes : sequence, optional
        Order of the rows; the graph's order by default.
    kind : {"normalized", "clipped"}, default="normalized"
        "normalized": ``(I + D^{-1/2} A D^{-1/2}) / 2`` with the adjacency matrix A and the degrees
        D; eigenvalues lie between 0 and 1. "clipped": the nearest positive semi-definite matrix to
        ``I + A``.

    Returns
    -------
    ndarray of shape (n, n)

    Raises
    ------
    ValueError
        For an unknown kind, or naming a node that the graph does not have.

    Examples
    --------
    >>> import networkx as nx
    >>> from structsolve.plugins.risk import hierarchy_kernel
    >>> hierarchy_kernel(nx.path_graph(2)).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    import networkx as nx  # heavy

    if isinstance(graph, Mapping):
        graph = nx.DiGraph(graph)
    names = list(graph) if nodes is None else list(nodes)
    missing = [v for v in names if v not in graph]
    if missing:
        raise ValueError(f"joint kernel: the graph has no node {missing[0]!r}, which is a label")
    A = nx.to_numpy_array(graph.to_undirected(), nodelist=names, weight=None)
    np.fill_diagonal(A, 0.0)
    if kind == "normalized":
        degree = np.maximum(A.sum(axis=1), 1)
        return (np.eye(len(A)) + A / np.sqrt(np.outer(degree, degree))) / 2
    if kind != "clipped":
        raise ValueError(f"kind is {kind!r}, expected 'normalized' or 'clipped'")
    values, vectors = np.linalg.eigh(np.eye(len(A)) + A)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def check_joint(kernel: Any, names: np.ndarray, size: int) -> np.ndarray:
    """Return a kernel over the parts of a node as a checked matrix.

    Parameters
    ----------
    kernel : array of shape (q, q), networkx graph, or dict of children by node
        A matrix, or a graph over the labels, from which :func:`hierarchy_kernel` makes a kernel.
    names : sequence of q labels
        Order of the rows for a graph.
    size : int
        q, the number of parts.

    Returns
    -------
    ndarray of float64 of shape (q, q)

    Raises
    ------
    ValueError
        When it is not a symmetric positive semi-definite matrix of this size.
    """
    if hasattr(kernel, "adj") or isinstance(kernel, Mapping):
        kernel = hierarchy_kernel(kernel, np.asarray(names).tolist())
    check_named(kernel, names, names, "joint_kernel")
    try:
        B = np.asarray(kernel, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"joint_kernel: found {type(kernel).__name__}, expected a matrix of numbers or a graph "
            "over the labels"
        ) from error
    if B.shape != (size, size):
        raise ValueError(
            f"joint_kernel has the shape {B.shape}, expected ({size}, {size}): one row per part"
        )
    if not np.isfinite(B).all() or np.abs(B - B.T).max() > 1e-9 * max(np.abs(B).max(), 1e-300):
        raise ValueError("joint_kernel: expected a symmetric matrix of finite numbers")
    values = np.linalg.eigvalsh(B)
    if values[0] < -1e-9 * max(values[-1], 0):
        raise ValueError(
            f"joint_kernel has the eigenvalue {values[0]:g}, expected a positive semi-definite "
            "matrix; structsolve.plugins.risk.hierarchy_kernel makes one from a graph"
        )
    return B
