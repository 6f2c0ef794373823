"""Tokens of label sequences as flat arrays, and their names in messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsolve.structure.pack import pack, structure_of
from structsolve.structure.weighted_labels import WeightedLabels, has_weights, split_weights
from structsolve.utils.suggest import a_type

Labels = Sequence[Any] | NDArray[Any]


def paired(
    y_true: Sequence[Labels], y_pred: Sequence[Labels]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """Return both sides as flat arrays of tokens, and the lengths that they share.

    Parameters
    ----------
    y_true, y_pred : sequence of sequences of str or int

    Returns
    -------
    true, pred : ndarray of shape (n_tokens,)
    lengths : ndarray of int of shape (n_sequences,)

    Raises
    ------
    ValueError
        For unequal lengths, mixed types, and no labels at all.
    """
    y_true, y_pred = in_sequence(y_true, y_pred)
    true, lengths = flatten(y_true, "y_true")
    pred, others = flatten(y_pred, "y_pred")
    if lengths.size != others.size:
        raise ValueError(
            f"y_true has {lengths.size} sequences and y_pred has {others.size}; "
            "expected the same number"
        )
    uneven = np.flatnonzero(lengths != others)
    if uneven.size:
        i = uneven[0]
        raise ValueError(
            f"y_true[{i}] has {lengths[i]} labels and y_pred[{i}] has {others[i]}; expected the "
            "same number in both"
        )
    if not true.size:
        raise ValueError("y_true holds no labels; there is nothing to score")
    check_kinds(true[0].item(), pred[0].item())
    return true, pred, lengths


def in_sequence(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return labels by node, which are dicts, as sequences in the order of predictions.

    Parameters
    ----------
    y_true, y_pred : sequence of labels

    Returns
    -------
    tuple
        Both.

    Raises
    ------
    ValueError
        If the labels of an example are not of the same nodes in both.

    Examples
    --------
    >>> in_sequence([{"u": 1, "v": 2}], [{"v": 3, "u": 4}])
    ([[2, 1]], [[3, 4]])
    """
    both = [y_true, y_pred]
    if not all(isinstance(Y, (list, tuple)) for Y in both) or len(y_true) != len(y_pred):
        return y_true, y_pred
    pairs = [*zip(y_true, y_pred, strict=True)]
    if not any(isinstance(one, dict) for pair in pairs for one in pair):
        return y_true, y_pred
    for i, (true, pred) in enumerate(pairs):
        named = [isinstance(one, dict) for one in (true, pred)]
        if any(named):
            if not all(named) or true.keys() != pred.keys():
                raise ValueError(
                    f"example {i}: y_true is {true!r:.60} and y_pred {pred!r:.60}; expected dicts "
                    "of the labels of the same nodes"
                )
            pairs[i] = [true[node] for node in pred], [*pred.values()]
    both = [*map(list, zip(*pairs, strict=True))]
    return both[0], both[1]


def unweighted(Y: Any) -> tuple[Any, NDArray[np.float64] | None]:
    """Return labels without weights of nodes, and the weights of all nodes.

    Parameters
    ----------
    Y : sequence of labels
        Entries may be :class:`~structsolve.WeightedLabels`; else `Y` is unchanged.

    Returns
    -------
    Y : sequence of labels
    weights : ndarray of shape (n_nodes,), or None
    """
    if not has_weights(Y):
        return Y, None
    flat = [
        WeightedLabels(y.labels, np.ravel(y.weights)) if isinstance(y, WeightedLabels) else y
        for y in Y
    ]
    parts = [y.labels if isinstance(y, WeightedLabels) else y for y in flat]
    sizes = [sum(map(np.size, y)) if hasattr(y, "__iter__") else 1 for y in parts]
    return split_weights(flat, np.cumsum([0, *sizes]))


def weighs_nodes(model: Any, y: Any) -> bool:
    """Return whether nodes may have other weights than 1: void ones, and WeightedLabels.

    Parameters
    ----------
    model : estimator
        Fitted.
    y : as for its ``fit``

    Returns
    -------
    bool
    """
    structure = structure_of(model)
    return structure is not None and (
        getattr(structure, "void", None) is not None or has_weights(y)
    )


def node_weights_of(model: Any, X: Any, y: Any) -> list[NDArray[np.float64]] | None:
    """Return the weights of the nodes of each example, 0 at void ones; None if all are 1.

    Parameters
    ----------
    model : estimator
        Fitted.
    X, y : as for its ``fit``

    Returns
    -------
    list of ndarray, or None
    """
    examples = pack(model.space_, X, y, unseen="extra")
    weights = examples.topology.get("node_weights")
    return None if weights is None else np.split(weights, examples.offsets[1:-1])


def without_void(model: Any, X: Any, y: Any, *labels: list[Any]) -> list[list[Any]]:
    """Return lists of label sequences without the nodes that are void in y.

    Parameters
    ----------
    model : estimator
        Fitted.
    X, y : as for its ``fit``
    *labels : list of sequence
        One sequence per example, a label for each node.

    Returns
    -------
    list
        One for each of ``labels``.
    """
    weights = node_weights_of(model, X, y) if weighs_nodes(model, y) else None
    if weights is None:
        return [*labels]
    return [[[*compress(row, w)] for row, w in zip(rows, weights, strict=True)] for rows in labels]


def check_kinds(one: Any, other: Any, name: str = "y_true", beside: str = "y_pred") -> None:
    """Refuse strings beside numbers: no label of one side can be one of the other.

    Parameters
    ----------
    one, other : str or int
        A label of each side.
    name, beside : str
        Names of the sides.

    Raises
    ------
    ValueError
        The message shows both labels.
    """
    if isinstance(one, str) != isinstance(other, str):
        raise ValueError(
            f"{name} holds labels such as {one!r} and {beside} such as {other!r}; expected strings "
            "in both or integers in both"
        )


def token_name(name: str, starts: NDArray[np.intp], position: Any) -> str:
    """Name a token of flat labels for messages.

    Parameters
    ----------
    name : str
        Name of the argument.
    starts : ndarray of int
        First token of each sequence.
    position : int
        Position of the token among all tokens.

    Returns
    -------
    str
        A name such as ``y_true[2][5]``.
    """
    example = int(np.searchsorted(starts, position, side="right")) - 1
    return f"{name}[{example}][{int(position) - int(starts[example])}]"


def flatten(sequences: Sequence[Labels], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Put all labels into one array.

    Parameters
    ----------
    sequences : sequence of sequences of str or int
    name : str
        Name of the argument in messages.

    Returns
    -------
    flat : ndarray of str or of int64, shape (n_tokens,)
    lengths : ndarray of int, shape (n_sequences,)

    Raises
    ------
    ValueError
        For anything but a sequence of sequences, or mixed strings and numbers; names the position.
    """
    listed = hasattr(sequences, "__iter__") and getattr(sequences, "ndim", 1) > 0
    if isinstance(sequences, str) or not listed:
        raise ValueError(
            f"{name} is {a_type(sequences)}; expected a list of label sequences, one per example"
        )
    sequences = list(sequences)
    for i, one in enumerate(sequences):
        if (
            isinstance(one, (str, bytes, dict, WeightedLabels))
            or not hasattr(one, "__len__")
            or getattr(one, "ndim", 1) != 1
        ):
            shown = repr(one) if len(repr(one)) < 60 else a_type(one)
            if isinstance(one, WeightedLabels):
                raise ValueError(
                    f"{name}[{i}] is WeightedLabels; expected labels alone: pass those of every "
                    "example (y.labels), or take a score by token, which counts the weights "
                    "(get_scorer)"
                )
            raise ValueError(
                f"{name}[{i}] is {shown}; expected a sequence of labels.  Wrap a single sequence "
                "as [labels]; for one label per example use sklearn.metrics"
            )
    lengths = np.fromiter(map(len, sequences), dtype=np.intp, count=len(sequences))
    flat = list(
        chain.from_iterable(
            one.tolist() if isinstance(one, np.ndarray) else one for one in sequences
        )
    )
    text = [isinstance(label, str) for label in flat]
    if all(text):
        return np.array(flat, dtype=np.str_), lengths
    if not any(text):
        try:
            plain = np.array(flat)
            with np.errstate(invalid="ignore"):
                whole = plain.astype(np.int64)
            if plain.dtype.kind in "biuf" and plain.ndim == 1 and (whole == plain).all():
                return whole, lengths
        except (TypeError, ValueError, OverflowError):
            pass

    def odd(label: Any) -> bool:
        if isinstance(label, str):
            return not text[0]
        return text[0] or not isinstance(label, (int, float, np.number)) or label != np.floor(label)

    position = next((i for i, label in enumerate(flat) if odd(label)), 0)
    expected = (
        "a string, like the other labels"
        if text[0]
        else "strings only or integers below 2**63 only"
    )
    raise ValueError(
        f"{token_name(name, np.cumsum(lengths) - lengths, position)} is {flat[position]!r}; "
        f"expected {expected}"
    )
