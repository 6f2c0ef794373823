"""What examples must have in common so that their labels have an average."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.structure.projection_calls import costs


def counts_of(examples: Examples) -> list[tuple[str, np.ndarray]]:
    """Return the numbers of nodes and of edges of each example, and what else its shape is.

    Parameters
    ----------
    examples : Examples

    Returns
    -------
    list of (str, ndarray of shape (n,))
    """
    none = np.zeros(1, dtype=np.int64)
    offsets = {
        "nodes": examples.offsets,
        "edges": examples.edge_offsets,
        "parts of a label": examples.label_offsets,
    }
    counts = [(name, none if o is None else np.diff(o)) for name, o in offsets.items()]
    shapes = examples.topology.get("shapes")  # of pictures and maps
    return counts if shapes is None else [*counts, ("rows", np.asarray(shapes)[:, 0])]


def refuse_sizes(counts: list[tuple[str, np.ndarray]], expected: Any, reason: str) -> None:
    """Refuse examples of other sizes than expected.

    Parameters
    ----------
    counts : list
        Result of :func:`counts_of`.
    expected : sequence of int
    reason : str
        Ends the message, and takes the number expected.

    Raises
    ------
    ValueError
        The message names the example.
    """
    for (name, count), size in zip(counts, expected):
        wrong = np.flatnonzero(count != size)
        if wrong.size:
            raise ValueError(
                f"example {wrong[0]}: found {count[wrong[0]]} {name}, {reason.format(size)}"
            )


def refuse_parts(examples: Examples, like: Examples, edges: bool) -> None:
    """Refuse examples of which as many nodes or edges are others than in the first of ``like``.

    Parameters
    ----------
    examples : Examples
        Of the shape of the first of ``like``.
    like : Examples
    edges : bool
        Whether edges count, as they do not in losses of nodes.

    Raises
    ------
    ValueError
        The message names the example.
    """
    first = _parts(like, 0, edges)
    for i in range(examples.n if first else 0):
        for name, own in _parts(examples, i, edges).items():
            known = first.get(name, own)
            if isinstance(own, list):  # names, which may also be other ones in every example
                other = own != known and not set(own).isdisjoint(known)
            else:
                other = not np.array_equal(own, known)
            if other:
                raise ValueError(
                    f"X, example {i}: found other {name} than in example 0 of training, or in "
                    "another order, expected the same in all: their labels have no average"
                )


def _parts(examples: Examples, i: int, edges: bool) -> dict[str, Any]:
    """Return what the nodes and edges of an example are, where examples may differ in it."""
    topology, told = examples.topology, {}
    if topology.get("names", [None] * examples.n)[i] is not None:  # of networkx graphs
        told["nodes"] = topology["names"][i]
    if "tails" in topology:  # of graphs with paths
        told["source and sink"] = topology["ends"][i]
        if edges:
            steps = slice(*topology["edge_starts"][i : i + 2])
            told["edges"] = np.stack([topology["tails"][steps], topology["heads"][steps]])
    if "arcs" in topology:  # candidates of dependency trees
        arcs = topology["arcs"][i]
        told["candidate arcs"] = np.stack([arcs.heads, arcs.modifiers])
    return told


def refuse_weights(examples: Examples, like: Examples, place: str) -> None:
    """Refuse weights of nodes that are not those of the first of ``like``.

    Parameters
    ----------
    examples : Examples
        Of one shape; without weights they pass.
    like : Examples
        Without weights, these are 1.
    place : str
        Names the first of ``like`` in the message.

    Raises
    ------
    ValueError
        The message names the example.
    """
    weights, known = (one.topology.get("node_weights") for one in (examples, like))
    if weights is not None:
        rows = weights.reshape(examples.n, -1)
        first = 1.0 if known is None else known[: rows.shape[1]]
        other = np.flatnonzero((rows != first).any(axis=1))
        if other.size:
            raise ValueError(
                f"y, example {other[0]}: found other weights of nodes than in {place}, "
                "expected the same in all: labels of different weights have no average; take "
                "StructuredSVM"
            )


def refuse_losses(loss: Any, name: Any, examples: Examples, size: int) -> None:
    """Refuse a loss that counts parts by what each example holds, such as costs of its nodes.

    Parameters
    ----------
    loss : Loss
        Bound to the examples.
    name : str or loss object
        For the message.
    examples : Examples
        Of one shape.
    size : int
        Of the part scores of an example.

    Raises
    ------
    ValueError
        The message names the example.
    """
    nu = np.arange(1.0, size + 1)
    first = costs(loss, 0, nu)
    for i in range(1, examples.n if examples.topology else 0):
        own = costs(loss, i, nu)
        if own[1] != first[1] or not np.array_equal(own[0], first[0]):
            raise ValueError(
                f"example {i}: loss {name!r} counts its parts otherwise than those of example 0, "
                "expected the same in all: such labels have no average; take StructuredSVM"
            )
