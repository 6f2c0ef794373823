"""The shell's reader of trees in brackets: features of the spans of their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from structsolve.io._text import no_examples
from structsolve.io.reader import Reader
from structsolve.io.select import parse_rows
from structsolve.plugins.cky.trees import length_of, read_trees, write_tree

# A bracket and a class, before the next bracket or the end of the line.
_TREE = re.compile(r"\s*\([^\s()]*\s*(\(|$)")


class BracketReader(Reader):
    """Reads trees in brackets, as of the Penn Treebank; predictions are such files, too.

    A file that does not begin with a bracket has the words of a sentence on each line, whatever
    they are, but no tabs and no trees.

    Parameters
    ----------
    rows : str or int, optional
        ``N`` or ``A:B``, of the sentences.
    n_bits : int, default=18
        Of :class:`~structsolve.plugins.cky.SpanFeaturizer`.
    longest : int, optional
        Leave out longer sentences in training.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.mrg"
    >>> _ = path.write_text("(S (NP (D the) (N dog)) (V barks))")
    >>> X, y = BracketReader().fit(str(path))
    >>> len(X), y
    (1, [('S', ('NP', 'D', 'N'), 'V')])
    """

    endings = (".mrg", ".brackets")
    structure_name = "cky"
    named_features = True
    annotates = "always"

    def __init__(self, rows: str | int | None = None, n_bits: int = 18, longest: int | None = None):
        self.rows = rows
        self.n_bits = n_bits
        self.longest = longest

    def fit(self, path: str) -> tuple[Any, Any]:
        """Read training data; see :meth:`Reader.fit`."""
        return self._read(path, self.longest)

    def read(self, path: str) -> tuple[Any, Any]:
        """Read data for a fitted model; see :meth:`Reader.read`."""
        return self._read(path, None)

    def _read(self, path: str, longest: int | None) -> tuple[Any, Any]:
        from structsolve.plugins.cky.features import SpanFeaturizer  # heavy: scikit-learn

        lines = list(self.lines(path))
        text = "\n".join(lines)
        if text.lstrip().startswith("("):
            try:
                both = list(read_trees(text))
            except ValueError as error:
                raise ValueError(f"{path}, line {getattr(error, 'line', 1)}: {error}") from None
        else:
            for number, line in enumerate(lines, 1):
                if "\t" in line.strip() or _TREE.match(line):
                    what = "a tab, as between columns" if "\t" in line else "the start of a tree"
                    raise ValueError(
                        f"{path}, line {number}: found {what}, expected trees in brackets alone, "
                        "or the words of a sentence on each line, with spaces between"
                    )
            both = [(None, line.split()) for line in lines if line.strip()]
        if not both:
            raise no_examples(path, "trees in brackets")
        both = both[parse_rows(self.rows)]
        both = [(y, words) for y, words in both if longest is None or len(words) <= longest]
        if not both:
            left = f"rows={self.rows}, longest={longest}"
            raise ValueError(f"{path}: found no examples left by {left}")
        for i, (tree, words) in enumerate(both):
            if tree is not None and length_of(tree) != len(words):
                raise ValueError(f"{path}, sentence {i + 1}: its words do not fit its tree")
        self._words = [words for _, words in both]
        trees = [tree for tree, _ in both]
        X = SpanFeaturizer(int(self.n_bits)).fit_transform(self._words)
        return X, None if None in trees else trees

    def size_text(self, X: Any) -> str:
        """Return the numbers of sentences, words and spans; see :meth:`Reader.size_text`."""
        words = sum(map(len, self._words))
        return f"{len(self._words)} sentences, {words} words, {X.features.shape[0]} spans"

    def annotated(self, labels: Sequence[Any]) -> Iterator[str]:
        """Yield the sentences with other trees; see :meth:`Reader.annotated`."""
        for words, tree in zip(self._words, labels, strict=True):
            yield write_tree(tree, words) + "\n"
