"""The base of plugins' readers of data files, for the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..utils.params import Params
from ._text import text_lines


class Reader(Params):
    """Reads one format of data files; plugins provide readers by the hook ``structsolve_readers``.

    A reader's state is its parameters. :meth:`fit` stores in them what it learns from training
    data, such as the names of columns: model files hold them (JSON values), and the reader of data
    for the model is made from them.

    The shell's options ``--target``, ``--split``, ``--where`` and ``--rows`` set parameters of
    these names, if a reader has them, ``fit`` also ``structure``, the name of the model's, and
    ``--option NAME=VALUE`` sets any other; ``split``, ``where`` and ``rows`` select examples of one
    file, and are not saved with the model.

    A method ``raw(path, columns)`` may return X and y as they are written, for the steps of a
    pipeline: ``columns`` are the names that its first step knows, their number, or None.  An
    attribute ``feature_names``, if it has one, names the columns of X for ``structsolve info``.

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
    #: Features are names, which only models trained on such files know; none is missing.
    named_features: bool = False
    #: The shell writes predictions by :meth:`annotated`: "always", if "asked" by ``--columns``.
    annotates: str = ""
    #: The structure that the shell trains if none is named; else it depends on the data.
    structure_name: str = ""
    #: Files hold examples and labels of any structure, also of one with a format of its own.
    any_structure: bool = False
    #: The weights of the examples that were read last, if the file has any.
    weights: Sequence[float] | None = None
    #: Of the path and options, what :func:`structsolve.io.read_examples` returns; by default `fit`.
    function: Callable[..., Any] | None = None

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
        self.__dict__.pop("_last", None)  # an empty file has no line

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

    def size_text(self, X: Any) -> str | None:
        """Return the size of data in words, for the shell.

        Parameters
        ----------
        X : object
            As it was read last.

        Returns
        -------
        str or None
            None for the number of rows and features.
        """
        return None

    def annotated(self, labels: Sequence[Any]) -> Iterator[str]:
        """Yield the examples that were read last, with other labels.

        Parameters
        ----------
        labels : sequence
            One list for each example.

        Yields
        ------
        str
            Pieces of a file.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement annotated()")

    def names(self, path: str) -> tuple[Any, Any]:
        """Read named features, for ``structsolve convert`` to a format with :meth:`write`.

        Parameters
        ----------
        path : str

        Returns
        -------
        X, y
            X has a list of names for each token of each sequence.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement names()")

    def write(self, path: str, X: Any, y: Any) -> None:
        """Write the named features and the labels of sequences.

        Parameters
        ----------
        path : str
        X : list of list of list of str
            As :meth:`names` returns them.
        y : list of list
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement write()")
