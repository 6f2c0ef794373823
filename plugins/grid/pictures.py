"""Pictures and label pictures as users give them, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsolve.examples.given import check_lengths
from structsolve.structure.weighted_labels import WeightedLabels, node_weights
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.suggest import a_type


@dataclass(frozen=True)
class Pictures:
    """Checked pictures, not yet stacked.

    Parameters
    ----------
    arrays : list of ndarray of shape (height, width, features)
        Views of the users' arrays, if these are numeric.
    shapes : ndarray of int64 of shape (n, 2)
        Height and width of each.
    stacked : bool
        Whether X was one array.
    """

    arrays: list[np.ndarray]
    shapes: np.ndarray
    stacked: bool


def read_pictures(X: Any, n_features: int | None = None) -> Pictures:
    """Check pictures.

    Parameters
    ----------
    X : list of arrays of shape (height, width, features), or one array (n, height, width, features)
        Numbers, without the last axis where pictures are grey.  Sizes may differ, in a list or an
        array of objects.
    n_features : int, optional
        Expected number; by default that of the first picture.

    Returns
    -------
    Pictures

    Raises
    ------
    ValueError
        The message names the example, and a pixel that is not finite. Also if pictures exceed
        the memory.
    """
    stacked = isinstance(X, np.ndarray) and X.dtype != object
    if stacked and X.ndim not in (3, 4):
        raise ValueError(
            f"X: found an array of shape {X.shape}, expected (n, height, width, features), (n, "
            "height, width) of grey pictures, or a list of pictures; one picture alone: [x]"
        )
    if not isinstance(X, (list, tuple, np.ndarray)):
        raise ValueError(
            f"X is {a_type(X)}, expected a list of pictures of shape (height, width, "
            "features), or one array of them"
        )
    if len(X) == 0:
        raise ValueError("X is empty: expected at least one picture")
    arrays = [_picture(x, i) for i, x in enumerate(X)]
    # As numbers of 8 bytes; views that repeat pixels take less here.
    largest = max(range(len(arrays)), key=lambda i: arrays[i].size)
    refuse_too_large(
        8.0 * sum(x.size for x in arrays),
        f"X: {len(arrays)} pictures, the largest of shape {arrays[largest].shape} (example "
        f"{largest}),",
        "use smaller or fewer pictures",
    )
    expected = arrays[0].shape[2] if n_features is None else n_features
    for i, x in enumerate(arrays):
        if x.shape[2] != expected:
            as_in = "training" if n_features is not None else "the first example"
            raise ValueError(
                f"X, example {i}: found {x.shape[2]} features per pixel, expected {expected} as in "
                f"{as_in}"
            )
        if not np.isfinite(x).all():
            row, column, feature = np.argwhere(~np.isfinite(x))[0].tolist()
            kind = "NaN" if np.isnan(x[row, column, feature]) else "infinity"
            raise ValueError(
                f"X: Input contains {kind} (example {i}, pixel {row, column}, feature {feature}); "
                "features must be finite: fill such pixels in, and name their labels void"
            )
    shapes = np.array([x.shape[:2] for x in arrays], dtype=np.int64)
    return Pictures(arrays, shapes, stacked)


def flat_labels(Y: Any, shapes: np.ndarray) -> list[Any]:
    """Return label pictures row by row, after checking that their sizes are those of X.

    Parameters
    ----------
    Y : list of arrays of shape (height, width) or WeightedLabels, or one array of them
    shapes : ndarray of int64 of shape (n, 2)
        Shapes of the pictures in X.

    Returns
    -------
    list of ndarray or WeightedLabels
        Flat.

    Raises
    ------
    ValueError
        The message names the example.
    """
    if Y is None:
        raise ValueError("y is None: grid requires y, a label picture for each picture of X")
    if not isinstance(Y, (list, tuple, np.ndarray)):
        raise ValueError(
            f"y is {a_type(Y)}, expected a list of label pictures of shape (height, "
            "width), or one array of them"
        )
    check_lengths(len(shapes), len(Y))
    return [_flat(y, shape, i) for i, (y, shape) in enumerate(zip(Y, shapes.tolist()))]


def flat_allowed(allowed: Any, shapes: np.ndarray, classes: np.ndarray) -> Any:
    """Return the allowed labels of each pixel, row by row.

    Parameters
    ----------
    allowed : list
        Per picture None, an array of bool of shape (height, width, n_classes), or rows of pixels
        that are lists of labels or None; a flat list of all pixels is accepted too.
    shapes : ndarray of int64 of shape (n, 2)
    classes : ndarray

    Returns
    -------
    list
        Per picture None, an array of bool of shape (pixels, n_classes), or a list of labels (or
        None) per pixel.

    Raises
    ------
    ValueError
        The message names the example.
    """
    if not isinstance(allowed, (list, tuple, np.ndarray)) or len(allowed) != len(shapes):
        return allowed  # allowed_mask() raises the error
    return [
        None if given is None else _flat_allowed(given, shape, classes, i)
        for i, (given, shape) in enumerate(zip(allowed, shapes.tolist()))
    ]


def _flat_allowed(given: Any, shape: list[int], classes: np.ndarray, i: int) -> Any:
    height, width = shape
    if isinstance(given, np.ndarray) and given.dtype == bool:
        if given.shape != (height, width, len(classes)):
            raise ValueError(
                f"example {i}: allowed has the shape {given.shape}, expected "
                f"{(height, width, len(classes))}: whether each pixel may take each class"
            )
        none = np.argwhere(~given.any(axis=2))
        if len(none):
            raise ValueError(
                f"example {i}, pixel {tuple(none[0].tolist())}: allowed leaves it no class; "
                "expected at least one"
            )
        return given.reshape(-1, len(classes))
    rows = list(given) if hasattr(given, "__iter__") else []
    if len(rows) == height and all(_is_row(row, width) for row in rows):
        return [pixel for row in rows for pixel in row]
    if len(rows) == height * width:
        return rows
    raise ValueError(
        f"example {i}: allowed is no picture of {height} rows of {width} pixels, expected an array "
        "of bool of shape (height, width, classes), or a list of labels (or None) for each pixel "
        "of each row"
    )


def _is_row(given: Any, width: int) -> bool:
    # A row of pixels, not the labels of one pixel.
    pixels = (list, tuple, set, np.ndarray, type(None))
    return (
        isinstance(given, (list, tuple, np.ndarray))
        and len(given) == width
        and all(isinstance(pixel, pixels) for pixel in given)
    )


def _picture(x: Any, i: int) -> np.ndarray:
    if x is None:
        raise ValueError(
            f"X, example {i} is None, expected a picture, an array of shape (height, width, "
            "features); leave the example out"
        )
    try:
        picture = np.asarray(x)
        if picture.dtype.kind == "c":
            raise TypeError("complex numbers")
        if picture.dtype.kind not in "biuf":
            picture = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X, example {i}: no picture of real numbers ({error}), expected an array of shape "
            "(height, width, features)"
        ) from None
    if picture.ndim == 2:
        picture = picture[..., None]
    if picture.ndim != 3:
        raise ValueError(
            f"X, example {i}: found the shape {picture.shape}, expected (height, width, features), "
            "or (height, width) of a grey picture; one picture alone: [x]"
        )
    if 0 in picture.shape:
        raise ValueError(
            f"X, example {i}: found the shape {picture.shape}, expected at least one pixel and one "
            "feature; leave the example out"
        )
    return picture


def _flat(y: Any, shape: list[int], i: int) -> Any:
    if isinstance(y, WeightedLabels):
        weights = node_weights(y, i)
        if weights.shape != tuple(shape):
            raise ValueError(
                f"y, example {i}: weights have the shape {weights.shape}, expected {tuple(shape)} "
                "as the picture in X"
            )
        return WeightedLabels(_flat(y.labels, shape, i), weights.ravel())
    if y is None:
        raise ValueError(
            f"y, example {i} is None, expected a label picture of shape {tuple(shape)}; leave the "
            "example out, or name its pixels void"
        )
    # NumPy turns numbers and None among strings into strings.
    try:
        picture = y if isinstance(y, np.ndarray) else np.array(y, dtype=object)
    except ValueError:  # rows of different lengths
        picture = np.zeros(0)
    if picture.shape != tuple(shape):
        given = f"the shape {picture.shape}" if picture.size else "rows of different lengths"
        raise ValueError(
            f"y, example {i}: found {given}, expected {tuple(shape)}, a label for each pixel of "
            "the picture in X"
        )
    return picture.ravel()
