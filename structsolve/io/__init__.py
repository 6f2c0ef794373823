"""Data files: CoNLL columns and trees, CRFsuite text, svmlight (two readers), NumPy archives.

`read_examples` guesses the format from the file's ending.  Malformed files raise a ValueError that
names the file and the line, what was found and what was expected.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

__all__ = ["FORMATS", "guess_format", "read_examples"]

#: File endings by format name, for guessing (``.gz`` may follow).
FORMATS: dict[str, tuple[str, ...]] = {
    "conll": (".conll", ".conllu", ".iob", ".iob2", ".bio", ".txt"),
    "crfsuite": (".crfsuite", ".crf"),
    "svmlight": (".svmlight", ".svm", ".libsvm"),
    "npz": (".npz",),
    "conllu": (),
}


def guess_format(path: str | os.PathLike[str]) -> str:
    """Name the format of a file by its ending.

    Parameters
    ----------
    path : path-like
        Upper or lower case; a final ``.gz`` is ignored.

    Returns
    -------
    str
        A key of `FORMATS`.

    Raises
    ------
    ValueError
        For an unknown ending.

    Examples
    --------
    >>> guess_format("train.conll.gz")
    'conll'
    """
    stem = os.fspath(path).lower().removesuffix(".gz")
    for name, endings in FORMATS.items():
        if stem.endswith(endings):
            return name
    known = "; ".join(
        f"{name}: {' '.join(endings)}" for name, endings in FORMATS.items() if endings
    )
    raise ValueError(f"{path}: found no known ending; give the format, or use one of {known}")


def read_examples(
    path: str | os.PathLike[str], format: str | None = None, **options: Any
) -> tuple[Any, Any]:
    """Read examples and their labels.

    Parameters
    ----------
    path : path-like
        The file; ``"-"`` is standard input (not for npz).
    format : {"conll", "crfsuite", "svmlight", "npz", "conllu"} or str, optional
        Or the name of a plugin's reader, such as "extreme". By default guessed from the ending.
    **options
        Passed on to the format's reader, e.g. ``label_column`` to
        `structsolve.io.conll.read_conll`.

    Returns
    -------
    X, y
        In the form of `read_conll`, `read_crfsuite`, `read_svmlight`, `read_npz`, `read_conllu`, or
        of the reader.

    Raises
    ------
    ValueError
        For an unknown format or ending, and for malformed files; it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.txt"
    >>> _ = path.write_text("a X\\nb Y\\n")
    >>> read_examples(path)
    ([[['a'], ['b']]], [['X', 'Y']])
    """
    name = guess_format(path) if format is None else format
    if name not in FORMATS:
        from structsolve import registry  # heavy

        others = [other for other in registry.default().names("readers") if other not in FORMATS]
        if name in others:
            return registry.default().make("readers", name, **options).fit(path)
        raise ValueError(
            f"format: found {name!r}; expected one of {', '.join([*FORMATS, *others])}"
        )
    reader = getattr(import_module(f"structsolve.io.{name}"), f"read_{name}")
    return reader(path, **options)
