# CoNLL-U: ten columns a word, comments, multiword tokens and empty nodes; the heads of words.
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any

import numpy as np

from structsolve.io._text import (
    PathLike,
    atomic_write,
    bad_line,
    no_examples,
    reads_file,
    text_lines,
)
from structsolve.plugins.dependency.arcs import as_pairs

HEAD, DEPREL, DEPS = 6, 7, 8
# Multiword tokens, and empty nodes of enhanced dependencies.
_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)").fullmatch
_EMPTY = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)").fullmatch


@dataclass
class ConlluSentence:
    """The lines of a sentence in a file, and the columns of its words.

    Parameters
    ----------
    lines : list of str
        All lines except the final empty one: comments, words, multiword tokens, empty nodes.
    rows : list of list of str
        The ten columns of every word.
    places : list of int
        Index into `lines` of each word.

    Examples
    --------
    >>> sentence = ConlluSentence.of(["He", "ran"], ["PRON", "VERB"], heads=[2, 0])
    >>> sentence.forms, sentence.heads.tolist()
    (['He', 'ran'], [2, 0])
    """

    lines: list[str]
    rows: list[list[str]]
    places: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, forms: Sequence[str], upos: Sequence[str], xpos: Any = None, heads: Any = None):
        """Make a sentence from words, tags and optional heads.

        Parameters
        ----------
        forms, upos : sequence of str
            The words, and their universal tags.
        xpos : sequence of str, optional
            Tags of the treebank.
        heads : sequence of int, optional
            Head of each word, counted from 1; 0 is the root.

        Returns
        -------
        ConlluSentence
        """
        rows = []
        for m, (form, tag) in enumerate(zip(forms, upos, strict=True)):
            head = "_" if heads is None else str(heads[m])
            fine = "_" if xpos is None else xpos[m]
            rows.append([str(m + 1), form, "_", tag, fine, "_", head, "_", "_", "_"])
        return cls(["\t".join(row) for row in rows], rows, list(range(len(rows))))

    def column(self, number: int) -> list[str]:
        """Return one column of all words.

        Parameters
        ----------
        number : int
            0 to 9.

        Returns
        -------
        list of str
        """
        return [row[number] for row in self.rows]

    @property
    def forms(self) -> list[str]:
        """The words."""
        return self.column(1)

    @property
    def upos(self) -> list[str]:
        """Universal tags."""
        return self.column(3)

    @property
    def xpos(self) -> list[str]:
        """Tags of the treebank; the universal tags if there are none."""
        return [row[3] if row[4] == "_" else row[4] for row in self.rows]

    @property
    def heads(self) -> np.ndarray | None:
        """Head of every word, 0 for the root; None if any is missing."""
        column = self.column(HEAD)
        return None if "_" in column else np.array([int(h) for h in column], dtype=np.int32)

    def arcs(self, main: bool = False) -> np.ndarray | None:
        """Return head and relation of every word.

        Parameters
        ----------
        main : bool, default=False
            Relations without their subtypes: ``nsubj`` of ``nsubj:pass``.

        Returns
        -------
        ndarray with the fields "head" and "relation", or None
            None if any head is missing.

        Raises
        ------
        ValueError
            If a word has a head and no relation (``_``).

        Examples
        --------
        >>> sentence = ConlluSentence.of(["He", "left"], ["PRON", "VERB"])
        >>> sentence = sentence.with_heads([(2, "nsubj:pass"), (0, "root")])
        >>> sentence.arcs(main=True).tolist()
        [(2, 'nsubj'), (0, 'root')]
        """
        heads, names = self.heads, self.column(DEPREL)
        if heads is None:
            return None
        if "_" in names:
            m = names.index("_")
            raise ValueError(f"word {m + 1} ({self.forms[m]!r}) has no relation, expected a DEPREL")
        return as_pairs(heads, np.array([n.split(":")[0] for n in names] if main else names))

    @property
    def text(self) -> str:
        """The lines of the sentence in a file, with the final empty line."""
        return "".join(f"{line}\n" for line in self.lines) + "\n"

    def __len__(self) -> int:
        return len(self.rows)

    def with_heads(self, heads: Sequence[Any]) -> ConlluSentence:
        """Return the sentence with other heads, or other heads and relations.

        Without relations, that of a word whose head changes becomes unknown: ``_``.

        Parameters
        ----------
        heads : sequence of int, or of pairs (head, relation)
            One per word, 0 the root.

        Returns
        -------
        ConlluSentence

        Raises
        ------
        ValueError
            For another number of heads.
        """
        if len(heads) != len(self.rows):
            raise ValueError(f"found {len(heads)} heads, expected {len(self.rows)}, one per word")
        lines, rows = list(self.lines), []
        for row, given, place in zip(self.rows, heads, self.places, strict=True):
            pair = isinstance(given, (tuple, list, np.void))
            head = str(int(given[0] if pair else given))
            name = str(given[1]) if pair else "_" if row[HEAD] != head else row[DEPREL]
            if [head, name] != row[HEAD : DEPREL + 1]:
                row = [*row[:HEAD], head, name, "_", *row[DEPS + 1 :]]
                lines[place] = "\t".join(row)
            rows.append(row)
        return ConlluSentence(lines, rows, list(self.places))


@reads_file
def read_conllu(path: PathLike) -> tuple[list[ConlluSentence], list[np.ndarray] | None]:
    """Read sentences with the heads of their words.

    Multiword tokens (``3-4``) and empty nodes (``3.1``) are no words; they stay in the lines of a
    sentence, so writing preserves them.

    Parameters
    ----------
    path : path-like
        Plain or gzip file in UTF-8; ``"-"`` is standard input.

    Returns
    -------
    sentences : list of ConlluSentence
    heads : list of ndarray of int32, or None
        None if no word of the file has a head (``_``).

    Raises
    ------
    ValueError
        For malformed lines and heads; it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.conllu"
    >>> row = "{}\\t{}\\t_\\t{}\\t_\\t_\\t{}\\tdep\\t_\\t_\\n".format
    >>> _ = path.write_text(row(1, "He", "PRON", 2) + row(2, "ran", "VERB", 0) + "\\n")
    >>> sentences, heads = read_conllu(path)
    >>> sentences[0].upos, heads[0].tolist()
    (['PRON', 'VERB'], [2, 0])
    """
    reading = _Reading(path)
    number = 0
    for number, line in text_lines(path):
        if not line.strip():
            reading.finish(number)
        elif line.startswith("#"):
            if reading.rows:
                raise bad_line(path, number, "a comment within a sentence", "a word")
            reading.lines.append(line)
        else:
            reading.take(number, line)
    reading.finish(number)
    sentences = reading.sentences
    if not sentences:
        raise no_examples(path, "lines of ten columns, one word each")
    if reading.known is None or not reading.known[1]:
        return sentences, None
    return sentences, [s.heads for s in sentences]  # type: ignore[misc]


class _Reading:
    """The sentences of a file so far, and the lines of the next one."""

    def __init__(self, path: PathLike) -> None:
        self.path = path
        self.sentences: list[ConlluSentence] = []
        self.known: tuple[int, bool] | None = None  # a line, and whether its word has a head
        self._start()

    def _start(self) -> None:
        self.lines: list[str] = []
        self.rows: list[list[str]] = []
        self.places: list[int] = []
        self.numbers: list[int] = []

    def take(self, number: int, line: str) -> None:
        """Read the line of a word, a multiword token or an empty node."""
        row = line.split("\t")
        if len(row) != 10:
            count = f"{len(row)} column{'s' * (len(row) != 1)} ({line[:60]!r})"
            raise bad_line(self.path, number, count, "10 columns between tabs")
        self.lines.append(line)
        if row[0] != str(len(self.rows) + 1):
            if _RANGE(row[0]) or _EMPTY(row[0]):
                return
            expected = f"word {len(self.rows) + 1}"
            raise bad_line(self.path, number, f"the number {row[0]!r}", expected)
        self._check_head(number, row)
        for c in (1, 3, 4):
            row[c] = intern(row[c])
        self.places.append(len(self.lines) - 1)
        self.numbers.append(number)
        self.rows.append(row)

    def _check_head(self, number: int, row: list[str]) -> None:
        head, path = row[HEAD], self.path
        if head != "_" and not (head.isascii() and head.isdigit() and len(head) < 9):
            raise bad_line(path, number, f"head {head!r}", "a number, 0 for the root, or _")
        if head == row[0]:
            raise bad_line(path, number, f"head {head}, the word itself", "another word, or 0")
        if self.known is None:
            self.known = number, head != "_"
        elif self.known[1] != (head != "_"):
            text = "a head" if head != "_" else "no head"
            expected = f"{'one' if self.known[1] else 'none'}, as on line {self.known[0]}"
            raise bad_line(path, number, text, expected)

    def finish(self, number: int) -> None:
        """End a sentence at an empty line, or at the end of the file."""
        if not self.rows:
            if any(not line.startswith("#") for line in self.lines):
                raise bad_line(self.path, number, "a sentence without words", "lines of words")
            if not self.lines:
                return
            if self.sentences:  # comments at the end of the file
                self.sentences[-1].lines += ["", *self.lines]
            self.lines = []
            return
        n = len(self.rows)
        for line, row in zip(self.numbers, self.rows):
            if row[HEAD] != "_" and int(row[HEAD]) > n:
                raise bad_line(self.path, line, f"head {row[HEAD]}", f"0 (the root) to {n}")
        self.sentences.append(ConlluSentence(self.lines, self.rows, self.places))
        self._start()


def write_conllu(
    path: PathLike, sentences: Iterable[ConlluSentence], heads: Iterable[Any] | None = None
) -> None:
    """Write sentences, with other heads, or heads and relations, if these are given.

    Parameters
    ----------
    path : path-like
        Replaced in one step.
    sentences : iterable of ConlluSentence
    heads : iterable of sequences, optional
        Head of each word, 0 the root, or pairs (head, relation).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.conllu"
    >>> sentence = ConlluSentence.of(["He", "ran"], ["PRON", "VERB"])
    >>> write_conllu(path, [sentence], [[2, 0]])
    >>> read_conllu(path)[1][0].tolist()
    [2, 0]
    """
    if heads is not None:
        sentences = [s.with_heads(h) for s, h in zip(sentences, heads, strict=True)]
    with atomic_write(path) as handle:
        handle.writelines(sentence.text for sentence in sentences)
