# FASTA: sequences of letters, with a second file of labels for the letters.
from __future__ import annotations

from dataclasses import KW_ONLY
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from structsolve.io._text import PathLike, bad_line, no_examples, reads_file, text_lines
from structsolve.io.reader import Reader
from structsolve.io.select import choose, parse_rows
from structsolve.utils.params import parameters


@parameters
class FastaReader(Reader):
    """Reads proteins or genes: X has a column for each letter at each position of a window.

    Parameters
    ----------
    target : str, optional
        FASTA file of labels: under the same names, a letter for each letter of the sequence.  Its
        headers may contain ``KEY=VALUE``, for ``split`` and ``where``.
    mask : str, optional
        FASTA file of 0 and 1: letters at 0 are left out, but appear in the windows of their
        neighbours.
    window : int, default=7
        Number of letters on each side for the features.
    split : str, optional
        Select the sequences whose label header has ``SET=`` this value.
    where : str, optional
        ``KEY=VALUE`` or ``KEY!=VALUE`` in the label headers.
    rows : str or int, optional
        ``N`` or ``A:B``, of the sequences that are left.
    letters : str, optional
        Letters of training data; :meth:`fit` finds them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "x.fasta").write_text(">p\\nACA\\n")
    >>> _ = (folder / "y.fasta").write_text(">p SET=train\\nHHE\\n")
    >>> reader = FastaReader(str(folder / "y.fasta"), window=0)
    >>> X, y = reader.fit(str(folder / "x.fasta"))
    >>> X[0].toarray().tolist(), y[0].tolist()
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], ['H', 'H', 'E'])
    """

    endings = (".fasta", ".fa")

    target: str | None = None
    _: KW_ONLY
    mask: str | None = None
    window: int = 7
    split: str | None = None
    where: str | None = None
    rows: str | int | None = None
    letters: str | None = None

    @classmethod
    def sniff(cls, path: str, head: bytes) -> bool:
        """Return whether a file starts with a header; see :meth:`Reader.sniff`.

        ``head``: how the file begins.
        """
        return head.startswith(b">")

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the letters; see :meth:`Reader.fit`.

        Raises
        ------
        ValueError
            For malformed files; it names the line or the sequence.
        """
        return _read(path, self, True)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; the files of labels and masks are those of training.

        See :meth:`Reader.read`.

        Returns
        -------
        X, y
            ``y`` is None if a sequence has no labels in that file.

        Raises
        ------
        ValueError
            For malformed files; it names the line or the sequence.
        """
        return _read(path, self, False)


@reads_file
def _read(path: str, reader: FastaReader, fit: bool) -> tuple[Any, Any]:
    rows = parse_rows(reader.rows)
    # Without a selection by label headers, take the first sequences.
    plain = reader.split is None and reader.where is None
    sequences = _sequences(path, rows.stop if plain else None)
    labels = _sequences(reader.target, None) if reader.target is not None else {}
    names = [*sequences]
    headers = {name: header for name, (_, header) in labels.items()}
    if reader.split is not None:
        names = [name for name in names if headers.get(name, {}).get("SET") == reader.split]
        if not names:
            known = sorted({header["SET"] for header in headers.values() if "SET" in header})
            raise ValueError(
                f"{path}: found no sequences of split {reader.split!r}; expected one of "
                f"{', '.join(known) or 'none (target holds SET=...)'}"
            )
    keys = {key for header in headers.values() for key in header}
    values = {
        key: np.array([headers[n].get(key, "") if n in headers else "" for n in names])
        for key in keys
    }
    kept = choose(path, reader.where, reader.rows, len(names), values)
    names = [names[i] for i in kept.tolist()]
    if fit:
        reader.letters = "".join(sorted({c for name in names for c in sequences[name][0]}))
    masks = _sequences(reader.mask, None) if reader.mask is not None else {}
    bare = next((name for name in names if name not in labels), None)
    labelled = bool(labels) and bare is None
    if fit and reader.target is not None and not labelled:
        expected = f"those of all sequences of {path}"
        raise ValueError(f"{reader.target}: found no labels of {bare!r}; expected {expected}")
    X, Y = [], []
    for name in names:
        text = sequences[name][0]
        beside = [(reader.mask, masks)] if masks else []
        for file, others in [*beside, *([(reader.target, labels)] if labelled else [])]:
            length = len(others[name][0]) if name in others else 0
            if length != len(text):
                raise ValueError(
                    f"{file}: found {length} letters of {name!r}; expected {len(text)}, as "
                    f"{path} has"
                )
        x = _windows(text, reader.letters or "", reader.window)
        seen = np.array([*masks[name][0]]) != "0" if masks else np.ones(len(text), bool)
        if not seen.any():
            continue
        X.append(x[seen])
        if labelled:
            Y.append(np.array([*labels[name][0]])[seen])
    return X, Y if labelled else None


def _sequences(path: PathLike, count: int | None) -> dict[str, tuple[str, dict[str, str]]]:
    """Letters by name, and the KEY=VALUE pairs of headers."""
    return {name: (text, header) for name, text, header in islice(_entries(path), count)}


def _entries(path: PathLike) -> Any:
    name, start = "", 0
    header: dict[str, str] = {}
    parts: list[str] = []
    names: set[str] = set()
    for number, line in text_lines(path):
        if line.startswith(">"):
            if name:
                yield _entry(path, start, name, parts, header)
            words = line[1:].split()
            if not words:
                raise bad_line(path, number, "no name", "one behind >")
            if words[0] in names:
                raise bad_line(path, number, f"the name {words[0]!r} twice", "names that differ")
            names.add(words[0])
            name, start, parts = words[0], number, []
            header = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        elif line.strip():
            if not name:
                raise bad_line(path, number, repr(line[:20]), "a header that starts with >")
            parts.append(line.strip())
    if not name:
        raise no_examples(path, "a header >name and letters")
    yield _entry(path, start, name, parts, header)


def _entry(path: PathLike, number: int, name: str, parts: list[str], header: dict[str, str]) -> Any:
    if not parts:
        raise bad_line(path, number, f"no letters of {name!r}", "some below its header")
    return name, "".join(parts), header


def _windows(text: str, letters: str, window: int) -> sparse.csr_matrix:
    """A row for each letter: indicators of the letters around it; unknown letters have none."""
    place = {letter: j for j, letter in enumerate(letters)}
    codes = np.array([place.get(letter, -1) for letter in text])
    n, width = len(text), 2 * window + 1
    around = np.arange(n)[:, None] + np.arange(-window, window + 1)
    inside = (around >= 0) & (around < n)
    seen = np.where(inside, codes[np.clip(around, 0, n - 1)], -1)
    rows, offsets = np.nonzero(seen >= 0)
    columns = offsets * len(letters) + seen[rows, offsets]
    shape = (n, width * len(letters))
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
