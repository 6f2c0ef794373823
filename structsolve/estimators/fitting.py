"""Helpers of ``fit``: the fingerprint of a training problem, the held-out set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..examples.given import check_weights, is_sparse, listed
from ..examples.packed import Examples
from ..lp.constraints import ConstrainedPolytopes
from ..potentials.mercer import given_dense
from ..solvers.problem import Problem
from ..structure.pack import pack
from ..utils.arrays import n_rows
from ..utils.sparse import as_csr
from .codec import plain
from .soft_labels import refuse_marginals


@dataclass
class TrainingData:
    """The arguments of fit(), checked and packed.

    Parameters
    ----------
    space : Space
    examples : Examples
        With labels and weights.
    X : as users give it
        The source of feature names.
    dense : bool
        Whether features are given as a dense array.
    held_out : tuple of Examples and bool, optional
        Packed validation examples, and whether their features are given as a dense array.
    """

    space: Any
    examples: Examples
    X: Any
    dense: bool
    held_out: tuple[Examples, bool] | None = None
    #: The problem of these arguments and its fingerprint, after training; paths reuse it.
    problem: Problem | None = field(default=None, init=False)
    #: The solver's weights after the last training.
    w: np.ndarray | None = field(default=None, init=False)
    fingerprint: str = field(default="", init=False)


def fingerprint_of(problem: Problem, settings: dict[str, Any]) -> str:
    """Return a digest of data and settings, which a checkpoint or a warm start must match.

    Parameters
    ----------
    problem : Problem
        Its packed examples are hashed.
    settings : dict
        JSON-able.

    Returns
    -------
    str
    """
    described = {
        "structure": description_of(problem.space.structure),
        "classes": repr(getattr(problem.space, "classes_", None)),
        **settings,
    }
    metric = problem.potentials.node_scale, problem.potentials.node_mix
    more = [problem.weights, *(array for array in metric if array is not None)]
    if problem.space.whole is not None:
        columns = problem.space.column_entries
        more += [columns.data, columns.indices, columns.indptr, np.array(columns.shape[1])]
    return fingerprint_of_examples(problem.examples, described, [*more, *constraint_rows(problem)])


def constraint_rows(problem: Problem) -> list[Any]:
    """Return the rows of an oracle's constraints on labels, of each example.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list
        Empty without constraints.
    """
    polytopes = getattr(getattr(problem.oracle, "decoder", None), "polytopes", None)
    if not isinstance(polytopes, ConstrainedPolytopes):
        return []
    return [polytopes.rows(i) for i in range(problem.n)]


def description_of(value: Any) -> str:
    """Return a description of a parameter's value that is the same in every process.

    Parameters
    ----------
    value : object
        A structure, surrogate, loss or solver, or its name.

    Returns
    -------
    str
        In the form of model files; if they cannot hold it, its ``repr``, which may omit numbers or
        contain an address.
    """
    try:
        return json.dumps(plain(value, "parameter"))
    except ValueError:
        return repr(value)


def fingerprint_of_examples(
    examples: Examples, settings: dict[str, Any], more: Sequence[Any] = ()
) -> str:
    """Return a digest of packed examples, further arrays and settings.

    Parameters
    ----------
    examples : Examples
        With labels.
    settings : dict
        JSON-able.
    more : sequence of ndarray, or of containers of them, optional

    Returns
    -------
    str
    """
    digest = hashlib.sha256()
    weights = [] if more or examples.sample_weight is None else [examples.sample_weight]
    whole = (examples.nodes, examples.edges, examples.offsets, examples.labels, *weights, *more)
    for value in whole:
        _add(digest, value)
    topology = examples.topology
    if topology and "identity" not in topology:  # all that a package packed
        _add(digest, [examples.label_offsets, examples.edge_offsets, *sorted(topology.items())])
    # Objects that are not arrays ("functions") are compared by identity.
    described = {"identity": repr(topology.get("identity")), **settings}
    digest.update(json.dumps(described, sort_keys=True).encode())
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add an array, or a container of arrays and their shapes, to a digest by its contents."""
    if is_sparse(value):
        value = value.tocsr()
        for part in (value.data, value.indices, value.indptr):
            _add(digest, part)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
    elif isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        kinds = [(str(getattr(part, "dtype", "")), getattr(part, "shape", None)) for part in value]
        digest.update(repr(kinds).encode())
        for part in value:
            _add(digest, part)
    elif value is not None:
        digest.update(description_of(value).encode())


def packed_validation(
    model: Any, space: Any, validation: Any, trained: Any
) -> tuple[Examples, bool] | None:
    """Return packed validation examples, and whether their features are given as a dense array.

    Parameters
    ----------
    model : estimator
        Asked to be trained; it does not change.
    space : Space
    validation : tuple (X, y), or None
    trained : object
        The X of training, whose columns a data frame must have.

    Returns
    -------
    tuple of Examples and bool, or None

    Raises
    ------
    ValueError
        If ``validation`` is no pair, or has other columns.
    """
    if validation is None:
        return None
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        many = f" of {len(validation)}" if isinstance(validation, (tuple, list)) else ""
        kind = f"{type(validation).__name__}{many}"
        raise ValueError(f"validation: found a {kind}, expected a pair (X, y)")
    X, y = listed(validation[0]), listed(validation[1], "y")
    refuse_marginals(space.structure, y, "validation compares them with predictions")
    learned = object.__new__(type(model))  # with names of columns alone
    learned._remember_names(trained)
    learned._check_names(X)
    return pack(space, X, y, unseen="extra"), given_dense(X)


def refuse_partial(y: Any) -> None:
    """Refuse labels that only another estimator takes, which their class names in ``trains``.

    Parameters
    ----------
    y : as users give it

    Raises
    ------
    ValueError
        The message names the first one.
    """
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype == object):
        for i, entry in enumerate(y):
            if isinstance(name := getattr(type(entry), "trains", None), str):
                raise ValueError(
                    f"y, example {i}: found {type(entry).__name__}, expected a label; train by "
                    f"{name}"
                )


def hold_out(
    X: Any, y: Any, sample_weight: Any, fraction: float, rng: np.random.Generator
) -> tuple[Any, Any, Any, tuple[Any, Any]]:
    """Split examples off for validation, of those whose weight is above 0.

    Parameters
    ----------
    X, y, sample_weight : as for ``fit``
    fraction : float
        Share of these examples to split off, at least one.
    rng : numpy Generator

    Returns
    -------
    X, y, sample_weight, (X_val, y_val)
        The remaining examples, and the validation set.

    Raises
    ------
    ValueError
        If none of them would be left.
    """
    X, y = indexed(X), indexed(y, "y")
    n = n_rows(X)
    weights = None if sample_weight is None else check_weights(sample_weight, n)
    counted = np.arange(n) if weights is None else np.flatnonzero(weights)
    size = max(1, round(fraction * len(counted)))
    if size >= len(counted):
        more = " of weight above 0" if len(counted) < n else ""
        raise ValueError(
            f"early_stopping: validation_fraction={fraction:g} splits off {size} of {len(counted)} "
            f"examples{more}, expected some that are left to train on; lower it, or pass "
            "validation=(X, y)"
        )
    held = np.sort(counted[rng.permutation(len(counted))[:size]])
    kept = np.setdiff1d(np.arange(n), held)
    weights = None if weights is None else weights[kept]
    return take(X, kept), take(y, kept), weights, (take(X, held), take(y, held))


def indexed(values: Any, what: str = "X") -> Any:
    """Return examples, or their labels, in a form with selectable rows.

    Parameters
    ----------
    values : as users give it
    what : str, default="X"
        Its name, for messages.

    Returns
    -------
    CSR, if ``values`` is sparse; ndarray, if it has no rows of its own; else itself
    """
    if hasattr(values, "tocsr"):
        return as_csr(values, what)
    if hasattr(values, "__array__") and not hasattr(values, "__len__"):
        return np.asarray(values)
    return values


def take(values: Any, rows: np.ndarray) -> Any:
    """Return some of the examples, or of their labels.

    Parameters
    ----------
    values : list, Sequences, array, sparse matrix or data frame
    rows : ndarray of int
        Numbers of the examples.

    Returns
    -------
    As ``values``
    """
    from sklearn.utils import _safe_indexing  # heavy

    if isinstance(values, (list, tuple)):
        return [values[i] for i in rows]
    if not hasattr(values, "shape"):
        return values[rows]
    return _safe_indexing(values, rows)
