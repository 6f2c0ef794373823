"""The shell's readers of label sequences with named features: CoNLL columns, CRFsuite's text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY
from typing import Any

from structsolve.io.reader import Reader
from structsolve.io.select import parse_rows
from structsolve.plugins.chain.conll import Sentence, conll_block, read_conll, split_labels
from structsolve.plugins.chain.crfsuite import read_crfsuite, write_crfsuite
from structsolve.plugins.chain.featurizer import features_of
from structsolve.utils.params import parameters


class _NamedReader(Reader):
    """Makes matrices of named features, by the columns of training."""

    named_features = True
    vectorizer: dict[str, Any] | None

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns that were learned, for ``structsolve info``."""
        return None if self.vectorizer is None else self.vectorizer["features"]

    def _matrices(self, X: Any, fit: bool) -> list[Any]:
        from structsolve.features.vectorizer import SequenceVectorizer  # heavy: scikit-learn

        if fit:
            made = SequenceVectorizer()
            rows = made.fit_transform(X)
            self.vectorizer = {"features": made.get_feature_names_out().tolist()}
            return rows
        assert self.vectorizer is not None
        return SequenceVectorizer.from_feature_names(self.vectorizer["features"]).transform(X)


@parameters
class ConllReader(_NamedReader):
    """Reads columns of tokens; predictions are written as one more column.

    Parameters
    ----------
    features : {"columns", "template", "attrs"}, default="columns"
        A feature for the value of each column, those of ``conll_features``, or columns that are
        CRFsuite's attributes, ``name[:value]``.
    window : int, default=2
        For the template, the number of tokens on either side.
    label_column : int, default=-1
    comment : str, optional
        Prefix of lines to skip before a sentence.
    columns : int, optional
        The number of columns without the label; :meth:`fit` stores it.
    vectorizer : dict, optional
        The names of features; :meth:`fit` stores them.
    rows : str or int, optional
        ``N`` or ``A:B``, of the sentences.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.conll"
    >>> _ = path.write_text("He PRP B-NP\\nran VBD B-VP\\n")
    >>> reader = ConllReader()
    >>> X, y = reader.fit(str(path))
    >>> y, "".join(reader.annotated([["O", "O"]]))
    ([['B-NP', 'B-VP']], 'He PRP B-NP O\\nran VBD B-VP O\\n')
    """

    endings = (".conll", ".iob", ".iob2", ".bio", ".txt")
    annotates = "asked"
    function = staticmethod(read_conll)

    features: str = "columns"
    _: KW_ONLY
    window: int = 2
    label_column: int = -1
    comment: str | None = None
    columns: int | None = None
    vectorizer: dict[str, Any] | None = None
    rows: str | int | None = None

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the number of columns and the names of features.

        See :meth:`Reader.fit`.

        Raises
        ------
        ValueError
            For malformed lines, and without the label's column.
        """
        self._check()
        sentences = self._sentences(path)
        width = len(sentences[0][0])
        self.columns = width - 1
        if not -width <= self.label_column < width or width < 2:
            raise ValueError(
                f"{path}: found {width} columns; expected a word and a label in column "
                f"{self.label_column}"
            )
        y = split_labels(sentences, self.label_column)
        return self._matrices(map(self._features, sentences), True), y

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; see :meth:`Reader.read`.

        Raises
        ------
        ValueError
            For malformed lines, and other numbers of columns than in training.
        """
        sentences, y = self.raw(path, self.columns)
        return self._matrices(map(self._features, sentences), False), y

    def raw(self, path: str, columns: Any = None) -> tuple[Any, Any]:
        """Read sentences of token columns, for the steps of a pipeline.

        Parameters
        ----------
        path : str
        columns : int, optional
            Their number without the label; anything else takes all for features.

        Returns
        -------
        X, y
            ``y`` is None without a column more.

        Raises
        ------
        ValueError
            For malformed lines, and other numbers of columns.
        """
        sentences = self._sentences(path)
        width = len(sentences[0][0])
        columns = columns if isinstance(columns, int) else width
        if width not in (columns, columns + 1):
            raise ValueError(
                f"{path}: found {width} columns; expected {columns} as in training, or "
                f"{columns + 1} with labels"
            )
        return sentences, split_labels(sentences, self.label_column) if width > columns else None

    @property
    def tokens(self) -> list[list[str]]:
        """The first column of every sentence that was read last, for lists of errors."""
        return [[token[0] for token in sentence] for sentence in self._lines]

    def annotated(self, labels: Sequence[Any]) -> Iterator[str]:
        """Yield the columns with another one; see :meth:`Reader.annotated`."""
        for i, (rows, row_labels) in enumerate(zip(self._lines, labels, strict=True)):
            yield "\n" * (i > 0) + conll_block(rows, row_labels)

    def names(self, path: str) -> tuple[Any, Any]:
        """Read a name for the value of each column; see :meth:`Reader.names`."""
        self._check()
        sentences = self._sentences(path)
        y = split_labels(sentences, self.label_column)
        if self.features != "columns":
            return list(map(self._features, sentences)), y
        return [[[f"c{j}={v}" for j, v in enumerate(t)] for t in s] for s in sentences], y

    def _check(self) -> None:
        if self.features != "template" and self.window != type(self).window:
            raise ValueError(
                f"window is {self.window}, which is for features 'template'; found features "
                f"{self.features!r}: leave one of them out"
            )

    def _sentences(self, path: str) -> list[Sentence]:
        rows = parse_rows(self.rows)
        sentences = read_conll(path, label_column=None, comment=self.comment)[0][rows]
        if not sentences:
            raise ValueError(f"{path}: found no examples left by rows={self.rows}")
        self._lines = [[list(token) for token in sentence] for sentence in sentences]
        return sentences

    def _features(self, sentence: Sentence) -> list[Any]:
        return features_of(sentence, self.features, self.window)


class CrfsuiteReader(_NamedReader):
    """Reads CRFsuite's text, and writes it.

    Parameters
    ----------
    vectorizer : dict, optional
        The names of features; :meth:`fit` stores them.
    rows : str or int, optional
        ``N`` or ``A:B``, of the sequences.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.crfsuite"
    >>> _ = path.write_text("@weight:2\\nB\\tw=a\\tlen:2\\nI\\tw=b\\n")
    >>> reader = CrfsuiteReader()
    >>> X, y = reader.fit(str(path))
    >>> X[0].shape, y, reader.weights
    ((2, 3), [['B', 'I']], [2.0])
    """

    endings = (".crfsuite", ".crf")
    function = staticmethod(read_crfsuite)

    def __init__(self, vectorizer: dict[str, Any] | None = None, rows: str | int | None = None):
        self.vectorizer = vectorizer
        self.rows = rows

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; store the names of features; see :meth:`Reader.fit`."""
        return self._read(path, True)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; see :meth:`Reader.read`."""
        return self._read(path, False)

    def write(self, path: str, X: Any, y: Any) -> None:
        """Write named features; see :meth:`Reader.write`."""
        write_crfsuite(path, X, y)

    def raw(self, path: str, columns: Any = None) -> tuple[Any, Any]:
        """Read sequences of named features, for the steps of a pipeline.

        Parameters
        ----------
        path : str
        columns : ignored

        Returns
        -------
        X, y
        """
        rows = parse_rows(self.rows)
        X, y, weights = read_crfsuite(path, return_weights=True)
        self.weights = None if weights is None else weights[rows]
        return X[rows], y[rows]

    def _read(self, path: str, fit: bool) -> tuple[Any, Any]:
        X, y = self.raw(path)
        return self._matrices(X, fit), y
