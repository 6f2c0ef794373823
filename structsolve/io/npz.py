# NumPy archives: X (dense, or CSR in parts), y, offsets of sequences, graphs, pictures; no pickle.
from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from itertools import pairwise
from reprlib import repr as brief
from typing import Any

import numpy as np
from scipy import sparse

from structsolve.examples.kinds import joined, one_kind
from structsolve.io._text import PathLike, atomic_write, reads_file
from structsolve.utils.sparse import as_csr, csr_of, split_rows
from structsolve.utils.suggest import a_type
from structsolve.utils.values import from_text, is_flat, to_text

_CSR = ("X_data", "X_indices", "X_indptr", "X_shape")
_GRAPHS = ("parents", "edges", "edge_offsets", "edge_features")
_OTHERS = ("offsets", "shapes", "classes", "y_json")


def write_npz(path: PathLike, X: Any, y: Any = None, compress: bool = True) -> None:
    """Write a feature matrix, or a list of one per sequence, and the labels.

    The file holds ``X`` (or ``X_data, X_indices, X_indptr, X_shape`` if sparse), ``y``, and for
    sequences ``offsets``: sequence i is rows ``offsets[i]:offsets[i + 1]``.

    Parameters
    ----------
    path : path-like
        Replaced in one step.
    X : matrix, or list with one per sequence
        Dense or CSR.  Trees and graphs are pairs ``(x, parents)`` or ``(x, edges)``, or triples
        with features of edges; the file then holds ``parents``, or ``edges`` and
        ``edge_offsets``, and ``edge_features``.  Nodes count from 0 in each example.  Pictures,
        of shape (height, width, features), are rows of pixels; the file then holds ``shapes``.
    y : array of labels, or list of them, optional
        Labels of other forms than one for each row of X, such as spans, tuples or trees, are stored
        as JSON in an array ``y_json``: nested lists, tuples, dicts, strings and numbers.
    compress : bool, default=True

    Raises
    ------
    ValueError
        For empty sequences, lengths that differ from the rows of X, arrays of objects, labels that
        JSON cannot represent, and examples of other forms, such as graphs with factors.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "toy.npz")
    >>> write_npz(path, [np.eye(2), np.ones((1, 2))], [["a", "b"], ["a"]])
    >>> X, Y = read_npz(path)
    >>> [x.tolist() for x in X], [y.tolist() for y in Y]
    ([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]], [['a', 'b'], ['a']])
    """
    arrays: dict[str, Any] = {}
    if isinstance(X, Sequence):
        _refuse_other_forms(X)
    if y is not None and _is_structured(X, y):
        arrays["y_json"], y = _as_json(X, y), None
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], tuple):
        graphs, X = _of_graphs(X)
        arrays.update(graphs)
    if _is_pictures(X):
        arrays["shapes"], X, y = _of_pictures(X, y)
    elif isinstance(X, Sequence):
        if not len(X):
            raise ValueError("X: found no sequences; expected at least one")
        lengths = [x.shape[0] for x in X]
        if 0 in lengths:
            raise ValueError(f"example {lengths.index(0)}: found no rows; expected one or more")
        _refuse_other_columns(X)
        arrays["offsets"] = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        if y is not None:
            for i, (labels, length) in enumerate(zip(y, lengths, strict=True)):
                if len(labels) != length:
                    raise ValueError(
                        f"example {i}: found {len(labels)} labels; expected {length}, as X has rows"
                    )
            y = joined(y, "y")
        stack = sparse.vstack if any(map(sparse.issparse, X)) else np.concatenate
        X = stack([*X])
    if sparse.issparse(X):
        X = as_csr(X)
        parts = (X.data, X.indices, X.indptr, np.array(X.shape, np.int64))
        arrays.update(zip(_CSR, parts, strict=True))
    else:
        arrays["X"] = np.asarray(X)
    if y is not None:
        arrays["y"] = y if isinstance(y, np.ndarray) else one_kind(y, "y")
        if np.shape(y)[:1] != np.shape(X)[:1]:
            raise ValueError(
                f"y has the shape {np.shape(y)}; expected a label for each of {np.shape(X)[0]} rows"
            )
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"{name}: found an object array; expected numbers or strings")
    with atomic_write(path, "wb") as handle:
        (np.savez_compressed if compress else np.savez)(handle, **arrays)


@reads_file
def read_npz(path: PathLike):
    """Read a file of `write_npz`.

    ``X_data`` may be missing (all ones), and so may ``y``.  If the file has ``classes``, ``y``
    indexes it.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    X : ndarray or scipy.sparse.csr_matrix, or list
        A list of matrices if the file has ``offsets``, of pairs or triples if it has ``parents`` or
        ``edges`` as well; of pictures if it has ``shapes``; then y is a list of label pictures.
    y : ndarray, or list of them, or None

    Raises
    ------
    ValueError
        For broken archives and arrays that do not fit together; it names the array.
    """
    return arrange(path, load_arrays(path, (*_CSR, *_GRAPHS, "X", "y", *_OTHERS)))


def load_arrays(path: PathLike, wanted: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of an archive, without making X and y.

    Parameters
    ----------
    path : path-like
    wanted : sequence of str, optional
        Allowed names, others are refused; by default all arrays except those of objects.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    ValueError
        For broken archives and other arrays, naming the file.
    """
    if path == "-":
        raise ValueError("-: archives are not read from standard input; give the name of the file")
    try:
        with open(path, "rb") as handle:
            if not zipfile.is_zipfile(handle):
                raise zipfile.BadZipFile("no table of contents at its end")
            with zipfile.ZipFile(handle) as members:
                for member in members.infolist():
                    _check_size(members, member)
            handle.seek(0)
            archive = np.load(handle, allow_pickle=False)
            if wanted is None:
                return _all_arrays(archive)
            if not {"X", "X_indptr"} & {*archive}:
                raise _no_features(path, ", ".join(archive) or "nothing")
            others = [name for name in archive if name not in wanted]
            if others:
                raise ValueError(
                    f"{path}: found the arrays {', '.join(others)}, which would not be read; "
                    f"expected some of {', '.join(wanted)}; structsolve.io.ArchiveReader reads "
                    "archives of other names"
                )
            return {name: archive[name] for name in archive}
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{path}: found a broken archive ({error}); expected a whole .npz file; it was cut "
            "short?"
        ) from error
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: not a readable .npz file: {error}") from error


def _all_arrays(archive: Any) -> dict[str, np.ndarray]:
    """All arrays, without arrays of objects."""
    arrays = {}
    for name in archive:
        try:
            arrays[name] = archive[name]
        except ValueError as error:
            if "Object arrays" not in str(error) or name.lower()[:1] in ("x", "y"):
                raise
    return arrays


def arrange(path: PathLike, arrays: dict[str, Any]):
    """Make X and y from the arrays of `write_npz`.

    Parameters
    ----------
    path : path-like
        For messages.
    arrays : dict of str to ndarray

    Returns
    -------
    X, y
        As of `read_npz`.

    Raises
    ------
    ValueError
        For arrays that do not fit together; it names the array.
    """

    def check(ok: Any, what: str, expected: str) -> None:
        if not ok:
            raise ValueError(f"{path}: found {what}; expected {expected}")

    if "y_json" in arrays:
        twice = [name for name in ("y", "classes") if name in arrays]
        check(not twice, f"y_json and {' and '.join(twice)}", "labels once")
        texts = arrays["y_json"]
        X, _ = arrange(path, {k: v for k, v in arrays.items() if k != "y_json"})
        n = len(X) if isinstance(X, list) else X.shape[0]
        sound = texts.shape == (n,) and texts.dtype.kind == "U"
        check(sound, f"y_json of {texts.dtype} {texts.shape}", f"{n} texts, one for each example")
        return X, [from_text(text) for text in texts.tolist()]
    if "X" in arrays:
        X, other = arrays["X"], [name for name in _CSR if name in arrays]
        check(not other, f"X and {', '.join(other)}", "features once")
        check(X.ndim == 2, f"X of shape {X.shape}", "two dimensions")
        check(X.dtype.kind in "biuf", f"X of type {X.dtype}", "numbers")
    else:
        if not all(name in arrays for name in _CSR[1:]):
            raise _no_features(path, ", ".join(arrays) or "nothing")
        X = _csr(arrays, check)
    rows = X.shape[0]
    check(rows and X.shape[1], f"X of shape {X.shape}", "at least one row and one column")
    y = arrays.get("y")
    if y is not None:
        check(y.ndim >= 1 and len(y) == rows, f"y of shape {y.shape}", f"{rows}, as X has rows")
        if "classes" in arrays:
            classes = arrays["classes"]
            sound = y.dtype.kind in "iu" and y.min() >= 0 and y.max() < len(classes)
            check(sound, "labels y outside of classes", f"integers below {len(classes)}")
            y = classes[y]
    graphs = [name for name in _GRAPHS if name in arrays]
    if "shapes" in arrays:
        check(not graphs and "offsets" not in arrays, "shapes and more", "pictures or graphs")
        check(isinstance(X, np.ndarray), "shapes and a sparse X", "pixels in a dense 'X'")
        return _pictures(X, y, arrays["shapes"], check)
    if "offsets" not in arrays:
        check(not graphs, f"{', '.join(graphs)} and no offsets", "the first row of each graph")
        return X, y
    offsets = arrays["offsets"]
    check(
        offsets.ndim == 1 and offsets.dtype.kind in "iu" and len(offsets) > 1,
        f"offsets of shape {offsets.shape} and type {offsets.dtype}",
        "one dimension of integers: where each sequence starts, and the end",
    )
    offsets = offsets.astype(np.int64)
    check(
        offsets[0] == 0 and offsets[-1] == rows and np.all(np.diff(offsets) > 0),
        f"offsets from {offsets[0]} to {offsets[-1]}, least step {np.diff(offsets).min()}",
        f"offsets that rise from 0 to {rows}, the rows of X (no empty sequence)",
    )
    pairs = pairwise(offsets.tolist())
    X = split_rows(X, offsets)
    if graphs:
        X = _graphs(X, offsets, arrays, check)
    return X, None if y is None else [y[a:b] for a, b in pairs]


def _is_structured(X: Any, y: Any) -> bool:
    """Return whether labels are not one for each row, node or pixel of X."""
    if not isinstance(X, Sequence):
        if isinstance(y, np.ndarray):
            return y.dtype == object and not is_flat(y)
        try:
            return np.asarray(y).dtype == object and not is_flat([*y])
        except ValueError:  # of different lengths
            return True
    if len(y) != len(X):
        raise ValueError(f"y has {len(y)} labels; expected {len(X)}, one for each example")
    nodes = [x[0] if isinstance(x, tuple) else x for x in X]
    if _is_pictures(X):
        return not all(map(_is_label_picture, y))
    if not all(is_flat(labels) for labels in y):
        return True
    # One label too many is a mistake; labels that never fit are labels of another form.
    return bool(len(y)) and not any(len(y[i]) == x.shape[0] for i, x in enumerate(nodes))


def _is_label_picture(label: Any) -> bool:
    """Return whether a label is a picture of any size, not a path of cells or similar."""
    if isinstance(label, list):
        if any(isinstance(row, (tuple, dict)) for row in label):
            return False
    elif not isinstance(label, np.ndarray):
        return False
    try:
        return np.ndim(label) == 2
    except ValueError:  # of different lengths
        return False


def _as_json(X: Any, y: Any) -> np.ndarray:
    n = len(X) if isinstance(X, Sequence) else X.shape[0]
    if len(y) != n:
        raise ValueError(f"y has {len(y)} labels; expected {n}, one for each example")
    texts = []
    for i, label in enumerate(y):
        try:
            texts.append(to_text(label))
        except TypeError as error:
            raise ValueError(f"example {i}: {error}") from None
    return np.array(texts)


def _refuse_other_columns(X: Sequence[Any]) -> None:
    """Refuse examples with other columns than the first."""
    own = [[*getattr(x, "columns", range(x.shape[1]))] for x in (X[0], *X)]
    for i, names in enumerate(own[1:]):
        if names != own[0]:
            raise ValueError(
                f"example {i}: found the columns {brief(names)}; expected {brief(own[0])}, as in "
                "example 0"
            )


def _no_features(path: PathLike, listed: str) -> ValueError:
    return ValueError(f"{path}: found the arrays {listed}; expected 'X', or '{', '.join(_CSR)}'")


def _refuse_other_forms(X: Sequence[Any]) -> None:
    """Refuse examples that are no matrices, trees, graphs with edges, or pictures."""
    for i, x in enumerate(X):
        nodes, *graph = x if isinstance(x, tuple) else (x,)
        axes = getattr(nodes, "ndim", 0)
        sound = axes == 2 or (axes == 3 and not graph)
        if sound and graph:
            try:
                ends = np.asarray(graph[0])
            except ValueError:  # ragged
                ends = np.array([0.5])
            fits = ends.shape == nodes.shape[:1] or ends.shape[1:] == (2,)
            sound = not ends.size or (fits and ends.dtype.kind in "iu")
        if not sound:
            raise ValueError(
                f"X, example {i}: found {a_type(x)}, expected a matrix, a picture, or a pair "
                "(matrix, parents) or (matrix, edges) of integers; files .ndjson hold examples of "
                "any form"
            )


def _of_graphs(X: Sequence[Any]) -> tuple[dict[str, Any], list[Any]]:
    """The arrays of graphs, and the features of their nodes."""
    size = len(X[0])
    if not all(isinstance(x, tuple) and len(x) == size and size in (2, 3) for x in X):
        raise ValueError("X: expected pairs (x, parents) or (x, edges), or triples, all alike")
    shapes = [np.asarray(x[1]) for x in X]
    arrays: dict[str, Any] = {}
    if all(shape.ndim == 1 and shape.size for shape in shapes):
        arrays["parents"] = np.concatenate(shapes).astype(np.int64)
    else:
        edges = [shape.reshape(-1, 2).astype(np.int64) for shape in shapes]
        arrays["edges"] = np.concatenate(edges)
        arrays["edge_offsets"] = np.r_[0, np.cumsum([len(e) for e in edges])].astype(np.int64)
    if size == 3:
        arrays["edge_features"] = np.concatenate([np.asarray(x[2]) for x in X])
    return arrays, [x[0] for x in X]


def _is_pictures(X: Any) -> bool:
    if isinstance(X, Sequence):
        return len(X) > 0 and all(isinstance(x, np.ndarray) and x.ndim == 3 for x in X)
    return isinstance(X, np.ndarray) and X.ndim == 4 and len(X) > 0


def _of_pictures(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Height and width of pictures, their pixels as rows, and the pixels' labels."""
    shapes = np.array([x.shape[:2] for x in X], dtype=np.int64)
    if y is not None:
        for i, (labels, shape) in enumerate(zip(y, shapes.tolist(), strict=True)):
            if np.shape(labels) != tuple(shape):
                raise ValueError(
                    f"example {i}: found labels of shape {np.shape(labels)}; expected "
                    f"{tuple(shape)}, as the picture has"
                )
        y = joined(y, "y")
    return shapes, np.concatenate([x.reshape(-1, x.shape[2]) for x in X]), y


def _pictures(X: np.ndarray, y: Any, shapes: np.ndarray, check: Any):
    """Pictures and label pictures from rows of pixels."""
    sound = shapes.ndim == 2 and shapes.dtype.kind in "iu" and shapes.shape[1:] == (2,)
    check(sound, f"shapes of {shapes.dtype} {shapes.shape}", "integers of shape (pictures, 2)")
    sizes = [math.prod(shape) for shape in shapes.tolist()]  # no overflow
    check(
        len(sizes) and shapes.min() > 0 and sum(sizes) == len(X),
        f"shapes of {sum(sizes)} pixels",
        f"heights and widths of at least 1, of {len(X)} pixels, as X has rows",
    )
    bounds = [*pairwise(np.r_[0, np.cumsum(sizes)].tolist())]
    shapes = shapes.tolist()
    pictures = [X[a:b].reshape(*shape, -1) for (a, b), shape in zip(bounds, shapes, strict=True)]
    if y is None:
        return pictures, None
    check(y.ndim == 1, f"y of shape {y.shape}", "a label for each pixel")
    return pictures, [y[a:b].reshape(shape) for (a, b), shape in zip(bounds, shapes, strict=True)]


def _graphs(X: list[Any], offsets: np.ndarray, arrays: dict[str, np.ndarray], check: Any):
    """Features of nodes with the parents or edges of each example, and features of edges."""
    check(
        ("parents" in arrays) != ("edges" in arrays),
        "neither or both of parents and edges" if "edges" in arrays else "no parents or edges",
        "'parents', one for each row of X, or 'edges' of shape (edges, 2) and 'edge_offsets'",
    )
    if "parents" in arrays:
        parents = arrays["parents"]
        sound = parents.dtype.kind in "iu" and parents.shape == (offsets[-1],)
        check(sound, f"parents of shape {parents.shape}", f"{offsets[-1]} integers, -1 at roots")
        shapes = [parents[a:b] for a, b in pairwise(offsets.tolist())]
        counts = [int((p >= 0).sum()) for p in shapes]
    else:
        edges, ends = arrays["edges"], arrays.get("edge_offsets")
        sound = edges.dtype.kind in "iu" and edges.ndim == 2 and edges.shape[1] == 2
        check(sound, f"edges of shape {edges.shape}", "integers of shape (edges, 2)")
        check(ends is not None, "edges and no edge_offsets", "the first edge of each graph")
        assert ends is not None
        sound = ends.dtype.kind in "iu" and ends.shape == offsets.shape and ends[0] == 0
        sound = (
            sound and ends[-1] == len(edges) and bool((np.diff(ends.astype(np.int64)) >= 0).all())
        )
        check(sound, "edge_offsets that do not fit", f"{len(offsets)} numbers, 0 to {len(edges)}")
        shapes = [edges[a:b] for a, b in pairwise(ends.tolist())]
        counts = [len(e) for e in shapes]
    if "edge_features" not in arrays:
        return list(zip(X, shapes, strict=True))
    features = arrays["edge_features"]
    sound = features.ndim == 2 and features.dtype.kind in "biuf" and len(features) == sum(counts)
    check(sound, f"edge_features of shape {features.shape}", f"one row for {sum(counts)} edges")
    ends = np.r_[0, np.cumsum(counts)].tolist()
    rows = [features[a:b] for a, b in pairwise(ends)]
    return list(zip(X, shapes, rows, strict=True))


def _check_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array that declares more than its file can hold, before allocating memory."""
    # Deflate compresses zeros by a factor of 1032.
    if member.file_size > 1100 * member.compress_size + 1000:
        raise ValueError(f"{member.filename} cannot hold the {member.file_size} bytes it declares")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        size = stream.tell() + math.prod(shape) * dtype.itemsize
        # Objects are refused below.
        if min(shape, default=0) < 0 or (size != member.file_size and not dtype.hasobject):
            raise ValueError(f"{member.filename} does not hold the {dtype} {shape} it declares")


def _csr(arrays: dict[str, np.ndarray], check: Any):
    indices, indptr, shape = (arrays[name] for name in _CSR[1:])
    data = arrays.get("X_data")
    data = np.ones(len(indices)) if data is None else data
    sound = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu" and shape.dtype.kind in "iu"
    check(sound, "X_indices, X_indptr or X_shape that are not integers", "integers")
    check(shape.shape == (2,), f"X_shape {shape.tolist()}", "the rows and columns of X")
    check(data.dtype.kind in "biuf", f"X_data of type {data.dtype}", "numbers")
    try:
        return csr_of(data, indices, indptr, shape)
    except ValueError as error:
        check(False, f"sparse arrays that do not fit together ({error})", "a CSR matrix")
