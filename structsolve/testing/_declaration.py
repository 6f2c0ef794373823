"""Checks of a structure's declaration: parameters, packing, and the saved state of a space."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..examples.given import is_sparse
from ..structure.pack import pack
from ..utils.arrays import n_rows
from ._case import Case
from ._promise import BrokenPromise


def check_parameters(structure: Any) -> None:
    """Constructor arguments are stored unmodified; ``get_params`` and ``clone`` work."""
    from sklearn.base import clone  # heavy

    def fail(what: str, promise: str, actual: Any, expected: Any) -> None:
        raise BrokenPromise(
            f"{structure!r}: {what} breaks a promise: it {promise}. Found {actual}, expected "
            f"{expected}"
        )

    if not isinstance(getattr(structure, "name", None), str):
        fail("name", "is a string", getattr(structure, "name", None), "a string")
    params = structure.get_params(deep=False)
    fresh = type(structure)(**params)
    for name, value in fresh.get_params(deep=False).items():
        if value is not params[name]:
            fail("__init__", f"stores {name!r} unmodified", repr(value), repr(params[name]))
    try:
        copied = clone(structure)
    except Exception as error:
        raise BrokenPromise(
            f"{structure!r}: __init__ breaks a promise: sklearn.base.clone() copies the "
            f"structure. Found {type(error).__name__}: {error}"
        ) from error
    if type(copied) is not type(structure) or set(copied.get_params()) != set(
        structure.get_params()
    ):
        fail("get_params", "describes the structure", copied.get_params(), params)
    if fresh.set_params(**params) is not fresh:
        fail("set_params", "returns the structure itself", "something else", "self")


def check_packing(case: Case) -> None:
    """Packing keeps every example, in order; unpacking returns the labels."""
    space, examples = case.space, case.examples
    n = n_rows(case.X)
    for name, array in _offsets(examples):
        rises_from_0 = (
            isinstance(array, np.ndarray)
            and array.dtype == np.int64
            and array.flags.c_contiguous
            and array.ndim == 1
            and len(array) > 0
            and array[0] == 0
            and (np.diff(array) >= 0).all()
        )
        if not rises_from_0:
            promise = f"gives {name} as contiguous non-decreasing int64 from 0"
            case.fail("pack", promise, None, repr(array), "such an array")
        if len(array) != n + 1:
            case.fail("pack", f"keeps every example ({name})", None, len(array) - 1, n)
    labels = examples.labels
    if labels is None or labels.dtype != np.int32 or not labels.flags.c_contiguous:
        case.fail("pack", "gives labels as contiguous int32", None, repr(labels), "such an array")
    if len(labels) != examples.label_offsets[-1]:
        promise = "gives as many labels as label_offsets say"
        case.fail("pack", promise, None, len(labels), examples.label_offsets[-1])
    layout = case.layout
    for what, matrix, offsets, columns in (
        ("nodes", examples.nodes, examples.offsets, layout.n_features if layout.node else None),
        ("edges", examples.edges, examples.edge_offsets, layout.n_edge_features),
    ):
        shape = (None if offsets is None else offsets[-1], columns)
        if matrix is not None and columns is not None and matrix.shape != shape:
            case.fail("pack", f"gives {what} one row each", None, matrix.shape, shape)
    with case.promise("pack", "packs X without labels"):
        bare = pack(space, case.X)
    if not equal((case.X, case.Y), case.given):
        case.fail("pack", "does not change X and y", None, (case.X, case.Y), case.given)
    if bare.labels is not None or not _same_inputs(bare, examples):
        case.fail("pack", "packs X the same with and without labels", None, bare, examples)
    _check_round_trip(case, examples, range(n))
    for rows in (list(range(1, n)), [n - 1, 0], [0]):
        with case.promise("pack", "packs any subset of the examples"):
            subset = pack(space, _pick(case.X, rows), _pick(case.Y, rows))
        if subset.n != len(rows):
            case.fail("pack", "keeps every example of a subset", None, subset.n, len(rows))
        for j, i in enumerate(rows):
            if not equal(_example(subset, j), _example(examples, i)):
                promise = "packs an example the same among any others"
                case.fail("pack", promise, i, _example(subset, j), _example(examples, i))
        _check_round_trip(case, subset, rows)
    if not _same_packed(case.learned, examples):
        case.fail("make_space", "returns the result of pack()", None, case.learned, examples)


def _check_round_trip(case: Case, examples: Any, rows: Any) -> None:
    with case.promise("unpack", "accepts the result of pack"):
        back = case.space.unpack(examples.labels, examples)
    if n_rows(back) != len(rows):
        case.fail("unpack", "returns every label", None, n_rows(back), len(rows))
    for j, i in enumerate(rows):
        if not equal(back[j], case.Y[i]):
            case.fail("unpack", "returns the labels that were packed", i, back[j], case.Y[i])
        with case.promise("unpack_one", "accepts one label from pack"):
            try:
                one = case.space.unpack_one(examples.label(j), examples, j)
            except NotImplementedError:  # then there are no k best
                continue
        if not equal(one, back[j]):
            case.fail("unpack_one", "returns the same label as unpack", i, one, back[j])


def check_state(case: Case) -> None:
    """The result of ``state`` survives JSON and arrays, and rebuilds the same space."""
    space = case.space
    if not getattr(space, "can_be_saved", True):
        try:
            space.state()
        except ValueError:
            return
        case.fail("state", "refuses what cannot be saved", None, "no exception", "ValueError")
    with case.promise("state", "describes the space"):
        meta, arrays = space.state()
    with case.promise("state", "returns values that JSON can hold"):
        meta = json.loads(json.dumps(meta))
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype == object:
            case.fail("state", f"returns {name!r} as an array without objects", None, array, "one")
    with case.promise("space_from_state", "rebuilds the space"):
        twin = case.structure.space_from_state(meta, arrays)
    classes, twins = (np.asarray(getattr(s, "classes_", ())) for s in (space, twin))
    if not np.array_equal(classes, twins) or classes.dtype != twins.dtype:
        case.fail("space_from_state", "keeps the classes", None, twins, classes)
    for name in ("blocks", "n_features", "n_edge_features", "intercept", "dim"):
        actual, expected = getattr(twin.layout, name), getattr(case.layout, name)
        if actual != expected:
            case.fail("space_from_state", f"keeps the layout ({name})", None, actual, expected)
    with case.promise("space_from_state", "rebuilds a space that packs"):
        packed = pack(twin, case.X, case.Y)
    same = np.array_equal(packed.labels, case.examples.labels)
    if not same or not _same_inputs(packed, case.examples):
        case.fail("space_from_state", "packs as before", None, packed, case.examples)


def _offsets(examples: Any) -> list[tuple[str, Any]]:
    arrays = [("offsets", examples.offsets), ("label_offsets", examples.label_offsets)]
    if examples.edge_offsets is not None:
        arrays.append(("edge_offsets", examples.edge_offsets))
    return arrays


def _example(examples: Any, i: int) -> list[Any]:
    # Features and sizes of one example; its label is compared after unpacking.
    pieces = []
    for matrix, offsets in (
        (examples.nodes, examples.offsets),
        (examples.edges, examples.edge_offsets),
    ):
        if offsets is not None:
            pieces.append(int(offsets[i + 1] - offsets[i]))
            if matrix is not None:
                pieces.append(matrix[offsets[i] : offsets[i + 1]])
    return pieces


def _same_inputs(a: Any, b: Any) -> bool:
    return a.n == b.n and all(equal(_example(a, i), _example(b, i)) for i in range(a.n))


def _same_packed(a: Any, b: Any) -> bool:
    arrays = [
        {name: v for name, v in x.topology.items() if isinstance(v, np.ndarray)} for x in (a, b)
    ]
    return (
        _same_inputs(a, b)
        and equal(a.labels, b.labels)
        and equal(a.label_offsets, b.label_offsets)
        and arrays[0].keys() == arrays[1].keys()
        and all(equal(arrays[0][name], arrays[1][name]) for name in arrays[0])
    )


def equal(a: Any, b: Any) -> bool:
    """Return whether labels, features or parts of them are equal, in any storage."""
    if is_sparse(a) or is_sparse(b):
        # The storage of features may depend on the number of zeros, also in other examples.
        a, b = (x.toarray() if is_sparse(x) else x for x in (a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        # NaN may be a valid value in a structure.
        real = all(np.asarray(x).dtype.kind == "f" for x in (a, b))
        return np.array_equal(a, b, equal_nan=real)
    if hasattr(a, "features") and hasattr(a, "offsets"):
        return np.array_equal(a.offsets, b.offsets) and equal(a.features, b.features)
    return bool(a == b)


def _pick(values: Any, rows: list[int]) -> Any:
    if isinstance(values, (list, tuple)):
        return [values[i] for i in rows]
    return values[rows]
