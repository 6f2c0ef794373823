# Published NumPy archives: splits, sparse labels, rankings, hierarchies, point sets.
from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from structsolve.examples.labels import first_difference
from structsolve.io._text import PathLike, reads_file
from structsolve.io.npz import arrange, load_arrays
from structsolve.io.reader import Reader
from structsolve.io.select import choose, take
from structsolve.utils.sparse import csr_of

from ..utils.params import parameters

# Names of label arrays, the likeliest first.
TARGETS = ("y", "Y", "labels", "target", "rank", "ranks", "order")
# Names of arrays that must not be ignored.
UNREAD = ("sample_weight", "weights", "unary", "pair")


@parameters
class ArchiveReader(Reader):
    """Reads .npz files of `structsolve.io.npz.write_npz`, and others by the names of their arrays.

    * ``X_train`` and ``Y_train`` (also ``X_train_indptr``, ``shape_test``, ...) are splits.
    * ``Y_indptr`` and ``Y_indices`` are label sets: y is a matrix of 0 and 1.
    * ``X_indptr`` and ``X_indices`` are a sparse X; ``shape`` is its shape, and perhaps the number
      of labels; for pictures ``shape`` holds height and width of each.
    * ``rank`` are rankings; ``order`` (the labels from the best to the worst) is turned into ranks.
    * ``edges`` of (child, parent), -1 for a root, with ``node_names``, are a hierarchy of labels.
    * ``NAME_f1``, ``NAME_f2`` and ``NAME_gtruth``, or ``points`` of shape (frames, points, 2), are
      sets of points to match: features of a pair are the distances of the points' features.

    Parameters
    ----------
    split : str, optional
        "train", "test", ...
    target : str, optional
        Name of the array of labels; by default y, Y, rank, ...
    where : str, optional
        ``NAME=VALUE``: the examples for which an array has this value, or ``NAME!=VALUE``.
    rows : str, optional
        ``N`` or ``A:B``, of the examples that are left.
    unpack : bool, default=False
        Features are bits, eight per byte of X.
    gap : int, default=10
        For ``points``: frame t is matched to frame t + gap.
    hierarchy : dict, optional
        Children by node; :meth:`fit` finds it.
    labels : list of str, optional
        The ``label_names`` of training; :meth:`fit` finds them.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "data.npz")
    >>> np.savez(path, X_train=np.eye(2), Y_train=[3, 4], X_test=np.ones((1, 2)), Y_test=[4])
    >>> X, y = ArchiveReader(split="test").read(path)
    >>> X.tolist(), y.tolist()
    ([[1.0, 1.0]], [4])
    """

    endings = (".npz",)
    any_structure = True
    brings = ("hierarchy",)

    split: str | None = None
    _: KW_ONLY
    target: str | None = None
    where: str | None = None
    rows: str | int | None = None
    unpack: bool = False
    gap: int = 10
    hierarchy: dict[str, list[str]] | None = None
    labels: list[str] | None = None

    @classmethod
    def sniff(cls, path: str, head: bytes) -> bool:
        """Return whether a file starts like an archive; see :meth:`Reader.sniff`.

        ``head``: how the file begins.
        """
        return head.startswith(b"PK\x03\x04")

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the hierarchy of labels, if any.

        See :meth:`Reader.fit`.

        Raises
        ------
        ValueError
            For broken archives and arrays that do not fit together; it names the array.
        """
        return _read(path, self, True)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; see :meth:`Reader.read`.

        Raises
        ------
        ValueError
            For broken archives and arrays that do not fit together; it names the array.
        """
        return _read(path, self, False)


@reads_file
def _read(path: str, reader: ArchiveReader, fit: bool) -> tuple[Any, Any]:
    arrays = _of_split(path, load_arrays(path), reader.split)
    if fit and "edges" in arrays and "node_names" in arrays and "offsets" not in arrays:
        reader.hierarchy = _children(path, arrays["edges"], arrays["node_names"])
    if fit and "label_names" in arrays:
        reader.labels = [str(name) for name in arrays["label_names"].ravel()]
    trained = {"node_names": reader.hierarchy, "label_names": reader.labels}
    for key, known in trained.items():
        names = [str(name) for name in np.ravel(arrays.get(key, ()))]
        if names and known is not None and names != [*known]:
            wrong = first_difference(names, [*known])
            raise ValueError(f"{path}: {key} are not those of training, in order: {wrong}")
    X, y = _matches(path, arrays, reader.gap) or _arranged(
        path, arrays, reader.target, reader.unpack
    )
    kept = choose(path, reader.where, reader.rows, _count(X), arrays)
    return take(X, kept), None if y is None else take(y, kept)


def _count(X: Any) -> int:
    return len(X) if isinstance(X, list) else X.shape[0]


def _of_split(
    path: PathLike, arrays: dict[str, np.ndarray], split: str | None
) -> dict[str, np.ndarray]:
    """The arrays of one split, named without it, and the arrays of no split."""
    if "X" in arrays or "X_indptr" in arrays:
        splits: list[str] = []
    else:
        splits = [
            name.removeprefix("X_").removesuffix("_indptr")
            for name in arrays
            if name.startswith("X_") and not name.endswith(("_indices", "_data", "_shape"))
        ]
    if split is None and len(splits) > 1:
        raise ValueError(
            f"{path}: found the splits {', '.join(splits)}; say which by split={splits[0]} "
            f"(--split {splits[0]})"
        )
    if split is None and splits:
        split = splits[0]
    if split is not None and split not in splits:
        raise ValueError(
            f"{path}: found no split {split!r}; "
            + (f"expected one of {', '.join(splits)}" if splits else "the file has no splits")
        )
    others = tuple(f"_{one}" for one in splits if one != split)
    chosen = {}
    for name, array in arrays.items():
        stem = name.removesuffix("_indptr").removesuffix("_indices").removesuffix("_data")
        if not stem.endswith(others or ("\0",)):
            own = f"_{split}"
            short = stem.removesuffix(own) + name[len(stem) :] if stem.endswith(own) else name
            chosen[short] = array
    return chosen


def _arranged(
    path: PathLike, arrays: dict[str, np.ndarray], target: str | None, unpack: bool
) -> tuple[Any, Any]:
    """X and y from arrays with the names of `write_npz`."""
    arrays = dict(arrays)
    shape = arrays.pop("shape", None)
    if shape is not None and shape.ndim == 2:
        arrays["shapes"] = shape
    if "X_indptr" in arrays and "X_indices" in arrays and "X_shape" not in arrays:
        columns = shape[1] if shape is not None and shape.ndim == 1 and len(shape) > 1 else None
        if columns is None:
            columns = int(arrays["X_indices"].max(initial=-1)) + 1
        arrays["X_shape"] = np.array([len(arrays["X_indptr"]) - 1, columns])
    if unpack:
        if arrays.get("X") is None or arrays["X"].dtype != np.uint8:
            raise ValueError(f"{path}: found no X of bytes (uint8), which unpack=True needs")
        arrays["X"] = np.unpackbits(arrays["X"], axis=1)
    unread = [name for name in UNREAD if name in arrays and name != target]
    if "edges" in arrays and "offsets" not in arrays and "node_names" not in arrays:
        unread.append("edges")
    if unread:
        raise ValueError(
            f"{path}: found the arrays {', '.join(unread)}, which would not be read: weights of "
            "rows are for fit(sample_weight=...), energies for 'decode', edges need offsets or "
            "node_names; leave them out"
        )
    if target not in (None, "y_json"):
        arrays.pop("y_json", None)
    labels = _labels(path, arrays, target, shape)
    for name in (*TARGETS, "edges" if "offsets" not in arrays else ""):
        arrays.pop(name, None)
    if labels is not None:
        arrays["y"] = labels
    return arrange(path, arrays)


def _labels(
    path: PathLike, arrays: dict[str, np.ndarray], target: str | None, shape: Any
) -> np.ndarray | None:
    """The array of labels; label sets become indicators, orders become ranks."""
    if "y_json" in arrays:
        return arrays.get("y")  # refused beside it
    sets = [name[: -len("_indptr")] for name in arrays if name.endswith("_indptr")]
    if target is None:
        rows = arrays["X"].shape[:1] if "X" in arrays else arrays.get("X_shape", ())[:1]
        fitting = (n for n in TARGETS if n in sets or arrays.get(n, np.empty(0)).shape[:1] == rows)
        target = next(fitting, "y" if "y" in arrays else None)
        if target is None:
            return None
    if target in sets:
        names = arrays.get("label_names", arrays.get("node_names"))
        return _indicators(path, arrays, target, names, shape)
    if target not in arrays:
        raise ValueError(
            f"{path}: found no array {target!r}; expected one of {', '.join([*arrays])}"
        )
    labels, names = arrays[target], arrays.get("label_names")
    if names is not None and labels.ndim == 2 and len(names) != labels.shape[1]:
        raise ValueError(
            f"{path}: found {len(names)} label_names, expected {labels.shape[1]}, one for each "
            f"column of {target!r}"
        )
    if target == "order":
        if labels.ndim != 2 or not (np.sort(labels, axis=1) == np.arange(labels.shape[1])).all():
            raise ValueError(f"{path}: the rows of 'order' are no permutations of 0, 1, ...")
        return np.argsort(labels, axis=1)
    return labels


def _indicators(
    path: PathLike, arrays: dict[str, np.ndarray], target: str, names: Any, shape: Any
) -> np.ndarray:
    indptr, indices = arrays[f"{target}_indptr"], arrays.get(f"{target}_indices")
    if indices is None:
        raise ValueError(f"{path}: found {target}_indptr and no {target}_indices; expected both")
    if names is not None:
        columns = len(names)
    elif shape is not None and shape.shape == (3,):
        columns = int(shape[2])
    else:
        columns = int(indices.max(initial=-1)) + 1
    try:
        ones = np.ones(len(indices), np.int8)
        sets = csr_of(ones, indices, indptr, np.array([len(indptr) - 1, columns]))
    except ValueError as error:
        raise ValueError(f"{path}: {target}_indptr and {target}_indices: {error}") from error
    return sets.toarray()


def _children(path: PathLike, edges: np.ndarray, names: np.ndarray) -> dict[str, list[str]]:
    """Children by node, from (child, parent); nodes in the order of their names."""
    nodes = [str(name) for name in names]
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.max(initial=-1) >= len(nodes):
        raise ValueError(
            f"{path}: edges of shape {edges.shape}; expected (child, parent) below {len(nodes)}"
        )
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for child, parent in edges.tolist():
        if parent >= 0:
            children[nodes[parent]].append(nodes[child])
    return children


def _matches(
    path: PathLike, arrays: dict[str, np.ndarray], gap: int
) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """Pairs of point sets: distances of features, and the match of each point."""
    stems = [name[: -len("_gtruth")] for name in arrays if name.endswith("_gtruth")]
    if stems:
        X, y = [], []
        for stem in stems:
            truth = arrays[f"{stem}_gtruth"].astype(np.int64)
            try:
                first, second = arrays[f"{stem}_f1"], arrays[f"{stem}_f2"]
            except KeyError as error:
                raise ValueError(f"{path}: found no array {error}; expected the points") from None
            X.append(_distances(first[: len(truth)], second))  # the others have no match
            y.append(truth)
        return X, y
    points = arrays.get("points")
    if points is None or points.ndim != 3 or "X" in arrays:
        return None
    if not 0 < gap < len(points):
        raise ValueError(f"{path}: gap is {gap}; expected 1 to {len(points) - 1}")
    # Both frames list the same points: their order would reveal the match.
    rng = np.random.default_rng(0)
    X, y = [], []
    for first, second in zip(points[:-gap], points[gap:], strict=True):
        order = rng.permutation(len(second))
        X.append(_distances(first, second[order]))
        y.append(np.argsort(order))
    return X, y


def _distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Distances of centred features over their spread, of shape (rows, columns, features)."""
    a, b = (np.asarray(points, dtype=np.float64) for points in (first, second))
    both = np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)])
    spread = both.std(axis=0)
    both /= np.where(spread > 0, spread, 1)
    return np.abs(both[: len(a), None] - both[None, len(a) :])
