"""Weights by name: entries of the blocks, and tables of the largest ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any

import numpy as np

from ..examples.given import listed


@dataclass
class NamedBlock:
    """A block of weights with a name for each place along each axis.

    Parameters
    ----------
    name : str
    columns : tuple of str
        What each axis is.
    labels : list of ndarray
        The names along each axis.
    values : ndarray
    """

    name: str
    columns: tuple[str, ...]
    labels: list[np.ndarray]
    values: np.ndarray

    def entries(self, chosen: np.ndarray) -> Iterator[tuple[tuple[Any, ...], float]]:
        """Yield names and weight of entries.

        Parameters
        ----------
        chosen : ndarray of int
            Their places in the flat array.

        Yields
        ------
        names : tuple
        weight : float
        """
        places = np.unravel_index(chosen, self.values.shape)
        names = [labels[place].tolist() for labels, place in zip(self.labels, places)]
        yield from zip(zip(*names), self.values.ravel()[chosen].tolist())

    def extremes(self, top: int | None) -> np.ndarray:
        """Return the places of the most positive and the most negative weights, falling.

        Parameters
        ----------
        top : int or None
            The number of each; None: all that are not 0.

        Returns
        -------
        ndarray of int
        """
        flat, chosen = self.values.ravel(), []
        for places in (np.flatnonzero(flat > 0), np.flatnonzero(flat < 0)):
            if top is not None and len(places) > top:
                places = places[np.argpartition(-np.abs(flat[places]), top - 1)[:top]]
            chosen.append(places)
        both = np.concatenate(chosen)
        return both[np.lexsort((both, -flat[both]))]


def named_blocks(model: Any, feature_names: Any = None) -> list[NamedBlock]:
    """Return the blocks of a model's weights with the names of their axes.

    Parameters
    ----------
    model : estimator
        Fitted.
    feature_names : sequence of str, optional
        Names of the node features; ``feature_names_in_`` or numbers by default.

    Returns
    -------
    list of NamedBlock

    Raises
    ------
    ValueError
        For a kernel model, and for names that do not fit.
    """
    if not model.coef_:
        raise ValueError(
            "a kernel model has no weights to name; dual_coef_ and support_ hold its dual variables"
        )
    names = names_of_features(model, feature_names)
    space = model.space_
    blocks, made = {b.name: b for b in space.layout.blocks}, []
    for name, values in model.coef_.items():
        block = blocks.get(name) or space.layout.node
        axes = block.axes or ("",) * len(block.shape)
        columns, labels = _axes(model, axes, block.shape)
        values = values.toarray() if hasattr(values, "tocsr") else values
        if values.ndim > len(block.shape):
            inner = dict(getattr(space, "row_axes", {})) if block.kind == "node" else {}
            size = values.shape[0] // math.prod(inner.values())
            values = values.reshape(size, *inner.values(), *values.shape[1:])
            rows = _rows(names if block.kind == "node" else None, size, bool(inner), space)
            more = _axes(model, [*inner], [*inner.values()])
            labels = [rows, *more[1], *labels]
            columns = ["feature", *more[0], *columns]
        made.append(_without_single(NamedBlock(name, tuple(columns), labels, values), space))
    return made


def names_of_features(model: Any, given: Any = None) -> Any:
    """Return the names of a model's features: given ones, or those of training.

    Parameters
    ----------
    model : estimator
        Fitted.
    given : sequence of str, optional

    Returns
    -------
    sequence or None
        None if there are none.

    Raises
    ------
    ValueError
        For a name that another column had in training.
    """
    own = getattr(model, "feature_names_in_", None)
    if given is None:
        return own
    names = listed(given, "feature_names")
    if isinstance(names, (str, bytes, dict)) or not hasattr(names, "__len__"):
        raise ValueError(
            f"feature_names is {names!r:.60}, expected a list, a name for each feature"
        )
    places = {str(name): j for j, name in enumerate(() if own is None else own)}
    for j, name in enumerate(names):
        place = places.get(str(name), j)
        if place != j:
            raise ValueError(
                f"feature_names: found {name!r} for feature {j}, but it named feature {place} in "
                f"training; expected {brief([*places])} in this order, or other names"
            )
    return names


def _rows(names: Any, size: int, joined: bool, space: Any) -> np.ndarray:
    """Return the names of features; the intercept is the last of those with axes of their own."""
    last = ["intercept"] if joined and space.intercept else []
    if names is None:
        return np.asarray([*range(size - 1), *last], object) if last else np.arange(size)
    if len(names) + len(last) != size:
        raise ValueError(f"feature_names has {len(names)} entries, expected {size - len(last)}")
    return np.asarray([*names, *last]) if last else np.asarray(names)


def _axes(model: Any, axes: Sequence[str], shape: Sequence[int]) -> tuple[list[str], list[Any]]:
    """Return the titles of the axes of a block, all different, and the names along them."""
    known = getattr(model.space_, "axis_names", {})
    labels = [
        np.asarray(model._state_names() if axis == "class" else known.get(axis, np.arange(size)))
        for axis, size in zip(axes, shape)
    ]
    columns = [axis or "number" for axis in axes]
    for axis in set(columns):
        equal = [k for k, other in enumerate(columns) if other == axis]
        # The two states of a pair; of more axes, as of rules, the first keeps the plain title.
        more = [f"{axis} {number}" for number in range(2, len(equal) + 1)]
        for k, title in zip(equal, ("from", "to") if len(equal) == 2 else (axis, *more)):
            columns[k] = title
    return columns, labels


def _without_single(block: NamedBlock, space: Any) -> NamedBlock:
    """Return a block without axes of one place that has no name, which tell nothing."""
    named = {"class", "feature", *getattr(space, "axis_names", {})}
    kept = [k for k, n in enumerate(block.values.shape) if n > 1 or block.columns[k] in named]
    kept = kept or [len(block.columns) - 1]
    return NamedBlock(
        block.name,
        tuple(block.columns[k] for k in kept),
        [block.labels[k] for k in kept],
        block.values.reshape([block.values.shape[k] for k in kept]),
    )


class WeightTables(dict):
    """Weights by block: a dict of tables that prints as text.

    A table is a list of rows, dicts of the names along the axes and of ``weight``, from the most
    positive to the most negative; ``pandas.DataFrame(tables[block])`` is a data frame of it.

    Parameters
    ----------
    blocks : iterable of NamedBlock
    top : int or None
        The number of most positive and of most negative weights of each block.
    what : str, default="weights"
        What they are, in the text.

    Examples
    --------
    >>> block = NamedBlock("node", ("feature", "class"), [np.array(["a", "b"]), np.array([0, 1])],
    ...                    np.array([[1.5, -0.5], [0.0, -2.0]]))
    >>> tables = WeightTables([block], top=1)
    >>> tables["node"][0]
    {'feature': 'a', 'class': 0, 'weight': 1.5}
    >>> print(tables)
    node: feature -> class, 3 of 4 weights are not 0
        1.5000  a -> 0
       ...
       -2.0000  b -> 1
    """

    def __init__(self, blocks: Iterable[NamedBlock], top: int | None = None, what: str = "weights"):
        if top is not None and not (isinstance(top, (int, np.integer)) and top >= 1):
            raise ValueError(f"top is {top!r}, expected an integer >= 1, or None for all weights")
        self.top, self._heads = top, {}
        for block in blocks:
            self[block.name] = [
                {**dict(zip(block.columns, names)), "weight": weight}
                for names, weight in block.entries(block.extremes(top))
            ]
            count, size = int(np.count_nonzero(block.values)), block.values.size
            axes = " -> ".join(block.columns)
            head = f"{block.name}: {axes}, {count} of {size} {what} are not 0"
            self._heads[block.name] = head, len(self[block.name]) < count

    def __str__(self) -> str:
        parts = []
        for block, rows in self.items():
            head, cut = self._heads[block]
            lines = [
                f"{row['weight']:10.4f}  " + " -> ".join(str(v) for v in [*row.values()][:-1])
                for row in rows
            ]
            if cut:
                lines.insert(sum(row["weight"] > 0 for row in rows), "       ...")
            parts.append("\n".join([head, *lines]))
        return "\n\n".join(parts)

    __repr__ = __str__
