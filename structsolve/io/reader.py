"""The base of plugins' readers of data files, for the shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..utils.params import Params
from ._text import text_lines


class Reader(Params):
    """Reads one format of data files; plugins provide readers by the hook ``structsolve_readers``.

    A reader's state is its parameters. :meth:`fit` stores in them what it learns from training
    data, such as the names of columns: model files hold them (JSON values), and the reader of data
    for the model is made from them.

    The shell's options ``--target``, ``--split``, ``--where`` and ``--rows`` set parameters of
    these names, if a reader has them, and ``--option NAME=VALUE`` sets any other; ``split``,
    ``where`` and ``rows`` select examples of one file, and are not saved with the model.

    Examples
    --------
    >>> from structsolve.io.reader import Reader
    >>> class Lines(Reader):
    ...     '''A number and a label on each line.'''
    ...     endings = (".lines",)
    ...     def read(self, path):
    ...         X, y = [], []
    ...         for line in self.lines(path):
    ...             number, label = line.split()
    ...             X.append([float(number)])
    ...             y.append(label)
    ...         return X, y
    >>> Lines().get_params()
    {}
    """

    #: Endings of files from which the shell guesses the format, in lower case.
    endings: tuple[str, ...] = ()
    #: Whether paths are folders; the shell uses the first such format for folders.
    folders: bool = False
    #: Parameters of structures that :meth:`fit` reads from the data: "hierarchy".
    brings: tuple[str, ...] = ()

    @classmethod
    def sniff(cls, path: str, head: bytes) -> bool:
        """Return whether a file looks like this format, regardless of its ending.

        Parameters
        ----------
        path : str
        head : bytes
            The start of the file, decompressed if gzip.

        Returns
        -------
        bool
        """
        return False

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines of a text file, plain or gzip, in UTF-8.

        The shell puts the file and the last line number in front of the reader's errors.

        Parameters
        ----------
        path : str

        Yields
        ------
        str
            Without its end.

        Raises
        ------
        ValueError
            If the file is no text, naming the line.
        """
        for number, line in text_lines(path):
            self._last = f"{path}, line {number}"
            yield line
        del self._last

    def place(self, path: str) -> str:
        """Return the current position, for messages: the file and the line.

        Parameters
        ----------
        path : str

        Returns
        -------
        str
        """
        return getattr(self, "_last", str(path))

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data, and store in parameters what reading other data needs.

        Parameters
        ----------
        path : str

        Returns
        -------
        X, y
            In the form of the estimator's ``fit``: a matrix, or a list with one entry per example.

        Raises
        ------
        ValueError
            For malformed files; it names the file and the line.
        """
        return self.read(path)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model.

        Parameters
        ----------
        path : str

        Returns
        -------
        X, y
            ``y`` is None if the file has no labels.

        Raises
        ------
        ValueError
            For malformed files; it names the file and the line.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement read()")
