"""Users' Dask collections as shards: their partitions, and the classes of all shards."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import registry
from ..examples.labels import all_classes
from ..examples.packed import Sequences
from ..solvers.problem import Problem
from ..structure.pack import learn_space, pack
from .shard import RemoteShard


def partitions(X: Any, name: str) -> list[Any]:
    """Return the partitions of a collection, as Dask objects.

    Parameters
    ----------
    X : dask bag, array or data frame, or list of Delayed or Future
    name : str
        Name of the argument, for messages.

    Returns
    -------
    list of Delayed or Future

    Raises
    ------
    TypeError
        For anything else: data in memory is for :class:`~structsolve.StructuredSVM`.
    """
    if hasattr(X, "to_delayed"):
        if hasattr(X, "rechunk") and X.ndim > 1:
            X = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
        return list(np.asarray(X.to_delayed(), dtype=object).ravel())
    if isinstance(X, (list, tuple)) and X and all(_is_lazy(part) for part in X):
        return list(X)
    kind = f"{type(X).__name__} of {type(X[0]).__name__}" if isinstance(X, list) and X else None
    raise TypeError(
        f"{name} is a {kind or type(X).__name__}, expected a dask bag, array or data frame, or a "
        "list of delayed partitions; for data in memory use StructuredSVM"
    )


def _is_lazy(part: Any) -> bool:
    return hasattr(part, "__dask_graph__") or hasattr(part, "add_done_callback")


def aligned(X: Any, y: Any, sample_weight: Any = None) -> list[tuple[Any, Any, Any]]:
    """Return the partitions of X with those of y and of the weights.

    Parameters
    ----------
    X, y : collections
        With partitions of the same examples; y None if X holds pairs (x, y).
    sample_weight : collection, optional

    Returns
    -------
    list of tuple
        X, y and weights of each partition; None for missing ones.

    Raises
    ------
    ValueError
        If their numbers differ.
    """
    whole = partitions(X, "X")
    parts: list[list[Any]] = [whole]
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is None:
            parts.append([None] * len(whole))
            continue
        if hasattr(given, "rechunk") and hasattr(X, "chunks") and given.chunks[0] != X.chunks[0]:
            given = given.rechunk({0: X.chunks[0]})
        own = partitions(given, name)
        if len(own) != len(whole):
            raise ValueError(
                f"{name} has {len(own)} partitions, X {len(whole)}: expected as many, of the same "
                "examples"
            )
        parts.append(own)
    return list(zip(*parts))


def plan(n_partitions: int, n_shards: int) -> list[list[tuple[int, int, int]]]:
    """Return the pieces of partitions of each shard.

    Parameters
    ----------
    n_partitions, n_shards : int

    Returns
    -------
    list of list of tuple of int
        Per shard: partition, number of the piece, and number of pieces of the partition.

    Examples
    --------
    >>> from structsolve.dask.data import plan
    >>> plan(5, 2)
    [[(0, 0, 1), (1, 0, 1), (2, 0, 1)], [(3, 0, 1), (4, 0, 1)]]
    >>> plan(2, 3)
    [[(0, 0, 2)], [(0, 1, 2)], [(1, 0, 1)]]
    """
    if n_partitions >= n_shards:
        groups = np.array_split(np.arange(n_partitions), n_shards)
        return [[(int(p), 0, 1) for p in group] for group in groups]
    pieces = [len(own) for own in np.array_split(np.arange(n_shards), n_partitions)]
    return [[(p, j, m)] for p, m in enumerate(pieces) for j in range(m)]


# The functions below run on workers.


def read_part(part: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Return X, y and weights of a partition, as lists or arrays.

    Parameters
    ----------
    part : tuple
        As :func:`aligned` has it, computed.

    Returns
    -------
    tuple
    """
    X, y, weights = part
    if y is None:
        if isinstance(X, tuple) and len(X) == 2 and not _is_pair(X[0]):
            X, y = X
        else:
            pairs = list(X)
            odd = next((p for p in pairs if not isinstance(p, (tuple, list)) or len(p) != 2), None)
            if odd is not None:
                raise ValueError(
                    f"X holds a {type(odd).__name__}, expected pairs (x, label): y is missing"
                )
            X, y = [x for x, _ in pairs], [label for _, label in pairs]
    return (
        read_column(X),
        read_column(y),
        None if weights is None else np.asarray(read_column(weights)),
    )


def _is_pair(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2


def read_column(values: Any) -> Any:
    """Return a computed partition as a list, an array or a sparse matrix.

    Parameters
    ----------
    values : iterable, array or data frame

    Returns
    -------
    list, ndarray, sparse matrix or Sequences
    """
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    if hasattr(values, "tocsr"):  # pieces are rows
        return values.tocsr()
    return values if hasattr(values, "shape") or isinstance(values, Sequences) else list(values)


def size_of(values: Any) -> int:
    """Return the number of examples of a column.

    Parameters
    ----------
    values : list, ndarray, sparse matrix or Sequences

    Returns
    -------
    int
    """
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def assemble(number: int, parts: list[Any], cuts: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """Return X, y and weights of a shard.

    Parameters
    ----------
    number : int
        Number of the shard.
    parts : list of tuple
        Its partitions.
    cuts : list of tuple of int
        The piece of each, and the number of pieces.

    Returns
    -------
    tuple

    Raises
    ------
    ValueError
        When it has no examples, or X and y of a partition are not of one length.
    """
    columns: list[list[Any]] = [[], [], []]
    for part, (piece, pieces) in zip(parts, cuts):
        X, y, weights = read_part(part)
        sizes = [size_of(column) for column in (X, y) if column is not None]
        if sizes[0] != sizes[-1]:
            raise ValueError(
                f"shard {number}: a partition has {sizes[0]} examples and {sizes[1]} labels"
            )
        bounds = np.linspace(0, sizes[0], pieces + 1).astype(int)
        first, last = int(bounds[piece]), int(bounds[piece + 1])
        for column, values in zip(columns, (X, y, weights)):
            column.append(values if pieces == 1 or values is None else values[first:last])
    if not sum(size_of(X) for X in columns[0]):
        raise ValueError(
            f"shard {number} has no examples: its partitions are empty; repartition the data, or "
            "use a smaller n_shards"
        )
    X, y = (_joined([v for v in column if size_of(v)]) for column in columns[:2])
    weights = None if columns[2][0] is None else np.concatenate(columns[2])
    return X, y, weights


def _joined(values: list[Any]) -> Any:
    import scipy.sparse as sp  # heavy

    if len(values) == 1:
        return values[0]
    first = values[0]
    if isinstance(first, Sequences):
        lengths = np.concatenate([np.diff(v.offsets) for v in values])
        return Sequences(_joined([v.features for v in values]), lengths, empty=True)
    if sp.issparse(first):
        return sp.vstack(values, format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate(values)
    return [x for value in values for x in value]


def learn(data: tuple[Any, Any, Any], number: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a shard's facts for the union over shards.

    Parameters
    ----------
    data : tuple
        As :func:`assemble` returned it.
    number : int
        Number of the shard.
    settings : dict
        ``structure``, ``fit_intercept``, ``plugins``.

    Returns
    -------
    dict
        ``classes`` (None if the structure has none), ``n_features``, ``n``, ``weight``,
        ``nbytes``, ``space``, ``learned`` (what the space has from data besides classes).

    Raises
    ------
    ValueError
        The message names the shard and the example.
    """
    registry.adopt_plugins(settings["plugins"])
    X, y, weights = data
    structure = registry.get_structure(settings["structure"])
    try:
        space, examples = learn_space(structure, X, y, None, settings["fit_intercept"], weights)
    except ValueError as error:
        raise ValueError(f"shard {number}: {error}") from error
    return {
        "classes": getattr(space, "classes_", None),
        "n_features": space.layout.n_features,
        "n": examples.n,
        "weight": float(examples.n if weights is None else np.sum(weights)),
        "nbytes": sum(_nbytes(a) for a in vars(examples).values()),
        "learned": space.learned(X, examples) if hasattr(space, "learned") else None,
        "space": space if number == 0 else None,
    }


def _nbytes(array: Any) -> int:
    if hasattr(array, "indptr"):
        return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
    return int(getattr(array, "nbytes", 0))


def union(facts: list[dict[str, Any]]) -> np.ndarray | None:
    """Return the classes of all shards; None if the first shard has all, or there are none.

    Parameters
    ----------
    facts : list of dict
        As :func:`learn` returned them.

    Returns
    -------
    ndarray, or None

    Raises
    ------
    ValueError
        If shards have features of different numbers, or labels that do not sort together.
    """
    for k, fact in enumerate(facts):
        if fact["n_features"] != facts[0]["n_features"]:
            raise ValueError(
                f"X: shard {k} has {fact['n_features']} features, shard 0 has "
                f"{facts[0]['n_features']}; make them by one vectorizer: "
                "structsolve.dask.fit_vectorizer learns the names of all partitions"
            )
    own = facts[0]["classes"]
    if own is None or all(np.array_equal(own, fact["classes"]) for fact in facts):
        return None
    every = [np.asarray(fact["classes"]) for fact in facts]
    numbers = [classes.dtype.kind in "biuf" for classes in every]
    if any(numbers) and not all(numbers):
        raise ValueError(
            f"y: shard {numbers.index(True)} has numbers as labels, shard {numbers.index(False)} "
            "has others; expected one kind"
        )
    classes = all_classes(*every)
    return None if np.array_equal(own, classes) else classes


def widen(data: tuple[Any, Any, Any], classes: Any, settings: dict[str, Any]) -> Any:
    """Return the space of a shard with the classes of all shards.

    Parameters
    ----------
    data : tuple
        As :func:`assemble` returned it.
    classes : ndarray
    settings : dict

    Returns
    -------
    Space
    """
    X, y, _ = data
    structure = registry.get_structure(settings["structure"])
    return learn_space(structure, X, y, classes, settings["fit_intercept"])[0]


def build(
    data: tuple[Any, Any, Any], number: int, totals: tuple[float, float], made: dict[str, Any]
) -> RemoteShard:
    """Return a shard.

    Parameters
    ----------
    data : tuple
        As :func:`assemble` returned it.
    number : int
    totals : tuple of float
        Weight of the examples of all shards, and of its own.
    made : dict
        ``space``, ``plugins``, ``loss``, ``surrogate``, ``penalize_intercept``, ``oracle``,
        ``gram``, ``seed``.

    Returns
    -------
    RemoteShard

    Raises
    ------
    ValueError
        The message names the shard and the example that does not fit the space.
    """
    registry.adopt_plugins(made["plugins"])
    X, y, weights = data
    try:
        examples = pack(made["space"], X, y, weights)
        problem = Problem(
            made["space"],
            examples,
            made["loss"],
            made["surrogate"],
            penalize_intercept=made["penalize_intercept"],
            gram=made["gram"],
            oracle=made["oracle"],
        )
    except ValueError as error:
        raise ValueError(f"shard {number}: {error}") from error
    return RemoteShard(problem, number, totals[0], totals[1], made["seed"])
