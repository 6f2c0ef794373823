"""Labels as tables of levels, a path from a root a row: read, checked, learned, written back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from structsolve.evaluation.tokens import check_kinds
from structsolve.examples.given import check_columns, check_row_counts
from structsolve.plugins.dag.hierarchy import Hierarchy

Path = tuple[Any, ...]
#: What stands for a missing level, by the names of model files.
MISSING: dict[str, Any] = {"empty": "", "none": None, "nan": np.nan}


def is_table(Y: Any, learning: bool) -> bool:
    """Return whether labels are a table of levels.

    Parameters
    ----------
    Y : as users give it
    learning : bool
        No hierarchy is given: numbers are names too, and lists are paths.

    Returns
    -------
    bool
        A data frame with a column that is not numeric, or a 2-D array of strings, of two or more
        columns; with ``learning``, any 2-D array or data frame and lists of paths.
    """
    if hasattr(Y, "tocsr") or (not learning and getattr(Y, "shape", ())[1:] == (1,)):
        return False  # a column of leaves
    if hasattr(Y, "columns"):
        return learning or any(getattr(kind, "kind", "O") not in "biuf" for kind in _kinds_of(Y))
    if hasattr(Y, "ndim"):
        texts = Y.ndim == 2 and getattr(Y.dtype, "kind", "") in "OUS"
        # One column of numbers is what scikit-learn takes as classes, with a warning.
        wide = Y.ndim == 2 and Y.shape[1] > 1
        return texts or (learning and (wide or Y.dtype.kind == "O"))
    return learning and isinstance(Y, (list, tuple)) and any(map(_is_row, Y))


def _kinds_of(frame: Any) -> list[Any]:
    """The types of a data frame's columns, of NumPy where pandas has them."""
    if hasattr(frame, "iloc"):
        return list(frame.dtypes)
    return [np.asarray(frame[name]).dtype for name in frame.columns]


def _cells_of(frame: Any) -> np.ndarray:
    """The cells of a data frame as objects; other packages' arrays have one type for all."""
    if hasattr(frame, "iloc"):
        return frame.to_numpy(dtype=object)
    cells = np.empty(frame.shape, dtype=object)
    for j, name in enumerate(frame.columns):
        cells[:, j] = list(frame[name])
    return cells


def _is_row(entry: Any) -> bool:
    return isinstance(entry, (list, tuple)) or (
        hasattr(entry, "__len__") and hasattr(entry, "shape")
    )


def read_paths(Y: Any, n: int | None, name: str = "y") -> list[Path]:
    """Return the path of every row: its names without the missing ones at the end.

    Parameters
    ----------
    Y : data frame, 2-D array, or list of lists of names
    n : int, optional
        Rows of X.
    name : str
        Name of the argument in messages.

    Returns
    -------
    list of tuple

    Raises
    ------
    ValueError
        For rows of another kind, without a name, or with a missing name in the middle, and for
        names that are neither strings nor integers; the message names the example.
    """
    rows = _cells_of(Y) if hasattr(Y, "columns") else Y
    rows = rows.tolist() if hasattr(rows, "tolist") else list(rows)
    check_row_counts(len(rows) if n is None else n, len(rows), f"labels in {name}")
    kinds: dict[type, tuple[int, Any]] = {}
    paths: list[Path] = []
    checked: dict[Path, Path] = {}
    for i, row in enumerate(rows):
        if not _is_row(row):
            raise ValueError(
                f"example {i}: {name} holds {row!r}, expected the names of its levels, root first"
            )
        key = tuple(row)
        path = checked.get(key) if all(isinstance(one, str) for one in key) else None
        if path is None:
            path = checked[key] = _path(key, i, name, kinds)
        paths.append(path)
    return paths


def _path(row: Path, i: int, name: str, kinds: dict[type, tuple[int, Any]]) -> Path:
    names = [None if _is_missing(one) else _plain(one, i, name) for one in row]
    while names and names[-1] is None:
        names.pop()
    if not names:
        raise ValueError(f"example {i}: {name} has no names, expected at least that of level 0")
    if None in names:
        k = names.index(None)
        after = next(j for j in range(k, len(names)) if names[j] is not None)
        raise ValueError(
            f"example {i}: level {k} of {name} is missing, but level {after} is {names[after]!r}; "
            "expected missing names at the end only"
        )
    for one in names:
        kinds.setdefault(type(one), (i, one))
    if len(kinds) > 1:
        (i, one), (j, other) = kinds.values()
        raise ValueError(
            f"{name} mixes strings and numbers: example {i} holds {one!r}, example {j} {other!r}; "
            "expected names of one kind"
        )
    return tuple(names)


def _is_missing(one: Any) -> bool:
    if one is None or isinstance(one, str):
        return not one
    return type(one).__name__ in ("NAType", "NaTType") or (isinstance(one, float) and one != one)


def _plain(one: Any, i: int, name: str) -> str | int:
    if isinstance(one, str):
        return str(one)
    whole = isinstance(one, (int, float, np.number)) and not isinstance(one, (bool, np.bool_))
    if whole and float(one).is_integer():
        return int(one)
    raise ValueError(
        f"example {i}: {name} holds the name {one!r} of type {type(one).__name__}, expected a "
        "string or an integer, or nothing (None, NaN, '') behind the last level"
    )


class Levels:
    """Paths of the nodes of a forest, and the form of the tables that hold them.

    Parameters
    ----------
    paths : list of tuple
        Of every node, in the order of the hierarchy; a node for ends at an inner node has its path.
    hierarchy : Hierarchy
    form : dict
        ``width``, the number of levels; ``columns``, the names of a data frame's, or None;
        ``missing``, a key of :data:`MISSING`; ``dtype``: "str", "int", "float" or "object".
    """

    def __init__(self, paths: list[Path], hierarchy: Hierarchy, form: dict[str, Any]) -> None:
        self.paths, self.hierarchy, self.form = paths, hierarchy, form
        leaves = {*hierarchy.leaves.tolist()}
        self.final = {path: v for v, path in enumerate(paths) if v in leaves}
        self.inner = {path: v for v, path in enumerate(paths) if v not in leaves}

    @classmethod
    def learn(cls, Y: Any, n: int) -> Levels:
        """Learn the hierarchy of the paths of a table.

        Nodes are known by their paths, so equal names below two parents are two nodes, named by
        their paths (``"fruit/other"``) where other nodes are named by their names alone.  An inner
        node at which paths end gets a leaf for these, ``"fruit (itself)"``.

        Parameters
        ----------
        Y : table
        n : int
            Rows of X.

        Returns
        -------
        Levels
        """
        rows = read_paths(Y, n)
        paths: dict[Path, None] = {}
        for path in dict.fromkeys(rows):
            paths.update(dict.fromkeys(path[: k + 1] for k in range(len(path))))
        parents = {path[:-1] for path in paths}
        own = [path for path in dict.fromkeys(rows) if path in parents]
        counts: dict[Hashable, int] = {}
        for path in paths:
            counts[path[-1]] = counts.get(path[-1], 0) + 1
        names: dict[Path, str] = {}
        taken: set[str] = set()

        def name(text: str) -> str:
            while text in taken:
                text += "'"
            taken.add(text)
            return text

        for path in sorted(paths, key=lambda path: counts[path[-1]] > 1):
            plain = counts[path[-1]] == 1
            names[path] = name(str(path[-1]) if plain else "/".join(map(str, path)))
        children: dict[str, list[str]] = {names[path]: [] for path in paths}
        for path in paths:
            if path[:-1]:
                children[names[path[:-1]]].append(names[path])
        for path in own:
            end = name(f"{names[path]} (itself)")
            children[names[path]].append(end)
            children[end] = []
        return cls([*paths, *own], Hierarchy(children), form_of(Y, rows))

    @classmethod
    def joined(cls, every: list[Levels]) -> Levels:
        """Return the paths of several tables, in the form of the first.

        Parameters
        ----------
        every : list of Levels

        Returns
        -------
        Levels
        """
        rows = [list(path) for levels in every for path in levels.final]
        made = cls.learn(rows, len(rows))
        short = (own for own in every if any(len(p) < own.form["width"] for p in own.final))
        form = next(short, every[0]).form
        return cls(made.paths, made.hierarchy, {**form, "width": made.form["width"]})

    @classmethod
    def under(cls, hierarchy: Hierarchy, Y: Any, n: int) -> Levels:
        """Return the paths of a given hierarchy, for a table of levels.

        Parameters
        ----------
        hierarchy : Hierarchy
        Y : table
        n : int

        Returns
        -------
        Levels

        Raises
        ------
        ValueError
            If a node has several parents.
        """
        if not hierarchy.forest:
            v = int(np.flatnonzero(hierarchy.parent == -2)[0])
            one, other = hierarchy.nodes[hierarchy.parents(v)[:2]].tolist()
            raise ValueError(
                f"y is a table of levels, but {hierarchy.nodes[v].item()!r} has the parents "
                f"{one!r} and {other!r} in the hierarchy, so a path does not tell all ancestors; "
                "give y as leaves or lists of labels, or leave hierarchy out to learn it from y, "
                "with a node below each of the two"
            )
        paths: list[Path] = [()] * len(hierarchy)
        for v in hierarchy.order.tolist():
            above = paths[hierarchy.parent[v]] if hierarchy.parent[v] >= 0 else ()
            paths[v] = (*above, hierarchy.nodes[v].item())
        return cls(paths, hierarchy, form_of(Y, read_paths(Y, n)))

    def encode(self, Y: Any, n: int, unseen: str = "error") -> np.ndarray:
        """Return the columns of the leaves at which paths end.

        Parameters
        ----------
        Y : table
        n : int
        unseen : {"error", "extra"}
            "extra": other paths get the number of nodes: a path without any of them.

        Returns
        -------
        ndarray of int32 of shape (n,)

        Raises
        ------
        ValueError
            The message names the example, the level and the name.
        """
        check_columns(Y, self.form["columns"])
        columns = np.empty(n, dtype=np.int32)
        spare = len(self.paths) if unseen == "extra" else None
        paths = read_paths(Y, n)
        if paths:
            check_kinds(paths[0][0], self.paths[0][0], "y", "the training data")
        for i, path in enumerate(paths):
            column = self.final.get(path, spare)
            if column is None:
                raise ValueError(self._unknown(path, i))
            columns[i] = column
        return columns

    def _unknown(self, path: Path, i: int) -> str:
        if path in self.inner:
            return (
                f"example {i}: the path {list(path)} of y ends at a node with children, at which "
                "no path of the training data ends; expected a leaf"
            )
        every = {*self.paths}
        k = next(k for k in range(len(path)) if path[: k + 1] not in every)
        below = f" below {path[k - 1]!r}" if k else ""
        known = sorted(p[k] for p in every if len(p) == k + 1 and p[:k] == path[:k])
        return (
            f"example {i}: level {k} of y is {path[k]!r}, which is no node{below}; known are "
            f"{known[:6]}{'...' if len(known) > 6 else ''}"
        )

    def decode(self, columns: np.ndarray) -> Any:
        """Return the paths of leaves as a table of the form of y.

        Parameters
        ----------
        columns : ndarray of int
            Of leaves.

        Returns
        -------
        ndarray of shape (n, n_levels), or data frame of pandas where it is installed
        """
        rows = self.table[columns]
        if self.form["columns"] is None:
            return rows
        try:
            from pandas import DataFrame  # heavy, and optional
        except ImportError:
            return rows
        return DataFrame(rows, columns=self.form["columns"]).infer_objects()

    @cached_property
    def table(self) -> np.ndarray:
        """The row of every node."""
        width, kind = self.form["width"], self.form["dtype"]
        gap = MISSING[self.form["missing"]]
        if kind == "int":  # which has no gaps, except behind paths that are shorter than others
            short = any(len(path) < width for path in self.final)
            kind, gap = ("object", gap) if short else (kind, 0)
        rows = np.full((len(self.paths), width), gap, dtype=object)
        for row, path in zip(rows, self.paths, strict=True):
            row[: len(path)] = path
        return rows if kind == "object" else rows.astype(kind)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs, for model files.

        Returns
        -------
        dict
        """
        return {"paths": [list(path) for path in self.paths], **self.form}

    @classmethod
    def from_state(cls, state: dict[str, Any], hierarchy: Hierarchy) -> Levels:
        """Rebuild what :meth:`state` described.

        Parameters
        ----------
        state : dict
        hierarchy : Hierarchy

        Returns
        -------
        Levels
        """
        form = dict(state)
        paths = [tuple(path) for path in form.pop("paths")]
        if len(paths) != len(hierarchy) or form["missing"] not in MISSING:
            raise ValueError(f"found {len(paths)} paths of {len(hierarchy)} nodes in the file")
        return cls(paths, hierarchy, form)


def form_of(Y: Any, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the form of a table; see :class:`Levels`.

    Parameters
    ----------
    Y : table
    paths : sequence of tuple

    Returns
    -------
    dict
    """
    columns = list(map(_name, Y.columns)) if hasattr(Y, "columns") else None
    rows = _cells_of(Y) if columns is not None else Y
    kind = getattr(getattr(rows, "dtype", None), "kind", "O")
    flat = rows.ravel().tolist() if hasattr(rows, "ravel") else [one for row in rows for one in row]
    gaps = [one for one in flat if _is_missing(one)]
    missing = "empty"
    if gaps and not isinstance(gaps[0], str):
        missing = "none" if gaps[0] is None else "nan"
    if kind == "O" and not gaps and isinstance(paths[0][0], int):
        missing = "none"
    dtype = {"U": "str", "S": "str", "i": "int", "u": "int", "f": "float"}.get(kind, "object")
    if kind == "O" and columns is None and not hasattr(rows, "dtype"):
        dtype = "object" if missing != "empty" or isinstance(paths[0][0], int) else "str"
    width = rows.shape[1] if getattr(rows, "ndim", 0) == 2 else max(map(len, paths))
    return {"width": width, "columns": columns, "missing": missing, "dtype": dtype}


def _name(column: Any) -> Any:
    return column.item() if isinstance(column, np.generic) else column


def prefix_numbers(*tables: list[Path]) -> list[np.ndarray]:
    """Return a number for every prefix of every path, the same in all tables; -1 beyond the end.

    Parameters
    ----------
    *tables : list of tuple

    Returns
    -------
    list of ndarray of int of shape (n, n_levels)
    """
    width = max((len(path) for paths in tables for path in paths), default=0)
    known: dict[tuple[int, Any], int] = {}
    answers = []
    for paths in tables:
        numbers = np.full((len(paths), width), -1)
        made: dict[Path, list[int]] = {}
        for row, path in zip(numbers, paths, strict=True):
            listed = made.get(path)
            if listed is None:
                listed, above = [], -1
                for one in path:
                    above = known.setdefault((above, one), len(known))
                    listed.append(above)
                made[path] = listed
            row[: len(path)] = listed
        answers.append(numbers)
    return answers
