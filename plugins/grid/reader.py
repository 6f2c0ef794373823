# Pictures: a folder of them, and a folder with a picture of labels for each.
from __future__ import annotations

import os
from typing import Any

import numpy as np

from structsolve.io.reader import Reader
from structsolve.io.select import parse_rows

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
# Modes of Pillow in which a pixel is one number; palette indices are labels.
_NUMBERS = ("1", "L", "P", "I", "I;16")


class PictureReader(Reader):
    """Reads a folder of pictures by Pillow; X has the colours of each pixel, from 0 to 1.

    Pictures are ordered by name.  Grey pictures have one feature for each pixel, others red, green
    and blue.

    Parameters
    ----------
    target : str, optional
        Folder of label pictures with the same names except for the ending: the grey value of a
        pixel, or its index in a palette, is its label.
    rows : str or int, optional
        ``N`` or ``A:B``, of the pictures.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, value in [("x", 255), ("y", 1)]:
    ...     (folder / name).mkdir()
    ...     _ = (folder / name / "a.pgm").write_bytes(b"P5 2 1 255\\n" + bytes([0, value]))
    >>> X, y = PictureReader(str(folder / "y")).fit(str(folder / "x"))  # doctest: +SKIP
    >>> X[0].tolist(), y[0].tolist()  # doctest: +SKIP
    ([[[0.0], [1.0]]], [[0, 1]])
    """

    folders = True

    def __init__(self, target: str | None = None, rows: str | int | None = None):
        self.target = target
        self.rows = rows

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data.

        Parameters
        ----------
        path : str
            The folder.

        Returns
        -------
        X : list of ndarray of shape (height, width, features)
        y : list of ndarray of shape (height, width), or None
            None without ``target``.

        Raises
        ------
        ValueError
            For folders without pictures, and pictures without labels of their size, naming them.
        ImportError
            Without Pillow.
        """
        return _read(path, self, True)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; the folder of labels is that of training.

        Parameters
        ----------
        path : str
            The folder.

        Returns
        -------
        X, y
            ``y`` is None if a picture has no labels in that folder.

        Raises
        ------
        ValueError
            For folders without pictures, and labels of another size, naming them.
        ImportError
            Without Pillow.
        """
        return _read(path, self, False)


def _read(path: str, reader: PictureReader, fit: bool) -> tuple[Any, Any]:
    files = _files(path)
    names = [*files][parse_rows(reader.rows)]
    labels = _files(reader.target) if reader.target is not None else {}
    missing = next((name for name in names if name not in labels), None)
    if fit and reader.target is not None and missing is not None:
        raise ValueError(
            f"{reader.target}: found no labels of {files[missing]}; expected a picture"
        )
    X = [_colours(files[name]) for name in names]
    for name, x in zip(names, X, strict=True):
        if x.shape[2] != X[0].shape[2]:
            raise ValueError(
                f"{files[name]}: found {x.shape[2]} colours a pixel; expected {X[0].shape[2]}, as "
                f"{files[names[0]]} has"
            )
    if missing is not None:
        return X, None
    return X, [_labels(labels[name], x.shape[:2]) for name, x in zip(names, X, strict=True)]


def _files(folder: str) -> dict[str, str]:
    """Paths of pictures by name without ending, in the order of names."""
    if not os.path.isdir(folder):
        raise ValueError(f"{folder}: expected a folder of pictures")
    paths: dict[str, str] = {}
    for file in sorted(os.listdir(folder)):
        name, ending = os.path.splitext(file)
        if ending.lower() in ENDINGS:
            if name in paths:
                raise ValueError(
                    f"{folder}: found {paths[name]} and {file}; expected one of a name"
                )
            paths[name] = os.path.join(folder, file)
    if not paths:
        raise ValueError(f"{folder}: found no pictures; expected files in {', '.join(ENDINGS)}")
    return paths


def _open(path: str) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError  # optional: an extra
    except ImportError as error:
        raise ImportError(
            "pictures need Pillow: pip install pillow, or structsolve-learn[pictures]"
        ) from error
    try:
        picture = Image.open(path)
        picture.load()
    except (UnidentifiedImageError, OSError) as error:
        raise ValueError(f"{path}: found no picture ({error}); expected one") from None
    return picture


def _colours(path: str) -> np.ndarray:
    """Numbers from 0 to 1 of shape (height, width, 1 or 3)."""
    picture = _open(path)
    if picture.mode in ("I", "I;16"):
        return np.asarray(picture, dtype=np.float64)[:, :, None] / 65535
    grey = picture.mode in ("1", "L", "LA")
    values = np.asarray(picture.convert("L" if grey else "RGB"), dtype=np.float64) / 255
    return values[:, :, None] if grey else values


def _labels(path: str, size: tuple[int, ...]) -> np.ndarray:
    picture = _open(path)
    if picture.mode not in _NUMBERS:
        raise ValueError(
            f"{path}: found colours ({picture.mode}); expected labels: a grey picture, or one with "
            "a palette"
        )
    y = np.asarray(picture).astype(np.int64)
    if y.shape != size:
        ours, theirs = (" x ".join(map(str, shape)) for shape in (y.shape, size))
        raise ValueError(f"{path}: found {ours} labels; expected {theirs}, as the picture has")
    return y
