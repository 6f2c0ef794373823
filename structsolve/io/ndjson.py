# Examples of any form as text: a JSON object on each line, such as {"x": [[0.5, 1]], "y": ["a"]}.
from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.io._text import bad_line, no_examples, reads_file, text_lines
from structsolve.io.reader import Reader
from structsolve.utils.values import TwiceError, from_text

KEYS = ("x", "y")


class NdjsonReader(Reader):
    """Reads a JSON object a line: ``x`` is an example as `fit` takes it, ``y`` its label.

    Lists of numbers become arrays of any number of axes: the features of a row, of the nodes of a
    sequence, of the pairs of an alignment or of the cells of a picture; null is a missing one, NaN.
    Strings, lists of strings and dicts stay what they are, and ``{"tuple": [...]}`` is a tuple,
    such as of features and edges.  ``y`` may be missing in all lines, and null where a model takes
    hidden labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.ndjson"
    >>> _ = path.write_text('{"x": "hht", "y": ["a", "a", "b"]}\\n{"x": "th", "y": ["b", "a"]}\\n')
    >>> NdjsonReader().read(str(path))
    (['hht', 'th'], [['a', 'a', 'b'], ['b', 'a']])
    """

    endings = (".ndjson",)
    any_structure = True

    def read(self, path: str) -> tuple[Any, Any]:
        """Read examples and labels; see :meth:`Reader.read`.

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        """
        given, y = _read(path)
        X = [_array(x, missing=True) for x in given]
        if not all(isinstance(x, np.ndarray) and x.ndim == 1 for x in X):
            return X, y
        return _stacked(path, X), y if y is None or None in y else _array(y)

    def size_text(self, X: Any) -> str:
        """Return how many examples there are; see :meth:`Reader.size_text`.

        ``X``: the examples.
        """
        return f"{len(X)} examples"

    def raw(self, path: str, columns: Any) -> tuple[list[Any], list[Any] | None]:
        """Read them without making arrays, for a pipeline; see :class:`Reader`.

        Parameters
        ----------
        path : str
        columns : object
            Not used.

        Returns
        -------
        X : list
        y : list or None

        Raises
        ------
        ValueError
            For malformed files; it names the line.
        """
        return _read(path)


@reads_file
def _read(path: str) -> tuple[list[Any], list[Any] | None]:
    X: list[Any] = []
    y: list[Any] = []
    for number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            example = from_text(line)
        except TwiceError as error:
            raise bad_line(path, number, f"the key {error} twice", "each key once") from None
        except (ValueError, RecursionError) as error:  # also of integers of too many digits
            raise bad_line(path, number, f"no JSON ({error})", "an object a line") from None
        if not isinstance(example, dict) or "x" not in example or {*example} - {*KEYS}:
            raise bad_line(path, number, repr(line[:60]), 'an object {"x": ..., "y": ...}')
        if X and ("y" in example) != bool(y):
            text = "no label y" if y else "a label y"
            raise bad_line(path, number, text, "one in all lines, or in none")
        X.append(example["x"])
        y += [example["y"]] if "y" in example else []
    if not X:
        raise no_examples(path, "an object a line")
    return X, y or None


def _stacked(path: str, rows: list[np.ndarray]) -> np.ndarray:
    sizes = [len(row) for row in rows]
    wrong = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if wrong is not None:
        raise ValueError(
            f"{path}: found {sizes[wrong]} numbers in example {wrong}; expected {sizes[0]} "
            "features, as example 0 has; symbols of a sequence are strings"
        )
    return np.stack(rows)


def _array(value: Any, missing: bool = False) -> Any:
    """Return lists of numbers as an array, anything else unchanged; null may be a missing one."""
    if not isinstance(value, list) or not value:
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return value
    if missing and array.dtype == object and {*map(type, array.flat)} <= {int, float, type(None)}:
        array = array.astype(np.float64)
    return array if array.dtype.kind in "iufb" else value
