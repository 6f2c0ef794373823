# The UAI format: a Markov network as text, for the search of its most probable labeling.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structsolve.io._text import PathLike, bad_line, reads_file, text_lines


class UAIModel(NamedTuple):
    """A pairwise model in logarithms; a labeling scores the same as in the network.

    The first four are the arguments of ``GraphModel`` in ``structsolve.plugins.mrf._model``.

    Parameters
    ----------
    states : ndarray of int, shape (n,)
        Number of states of each variable.
    ends : ndarray of int, shape (m, 2)
        The variables of each pairwise factor, the smaller first.
    unary : list of ndarray
        Scores of the states of each variable.
    pair : list of ndarray
        Scores of the pairs of states, a table per row of `ends`.
    constant : float
        The logarithm of factors over no variable.
    """

    states: np.ndarray
    ends: np.ndarray
    unary: list[np.ndarray]
    pair: list[np.ndarray]
    constant: float


class _Tokens:
    """The words of a file one after the other, each with its line."""

    def __init__(self, path: PathLike) -> None:
        self.path = path
        self.words: list[str] = []
        self.lines: list[int] = []
        for number, line in text_lines(path):
            words = line.split()
            self.words += words
            self.lines += [number] * len(words)
        self.next = 0

    def error(self, text: str, expected: str, position: int | None = None) -> ValueError:
        position = max(self.next - 1, 0) if position is None else position
        number = self.lines[position] if self.lines else 1
        return bad_line(self.path, number, text, expected)

    def word(self, what: str) -> str:
        if self.next == len(self.words):
            raise self.error("the end of the file", f"{what}; it was cut short?")
        self.next += 1
        return self.words[self.next - 1]

    def integer(self, what: str, least: int, most: int | None = None) -> int:
        word = self.word(what)
        value = int(word) if word.isascii() and word.isdigit() and len(word) < 12 else least - 1
        if value < least or (most is not None and value > most):
            limits = f"at least {least}" if most is None else f"{least} to {most}"
            raise self.error(repr(word[:40]), f"{what}: an integer, {limits}")
        return value

    def logarithms(self, count: int, what: str) -> np.ndarray:
        begin = self.next
        words = self.words[begin : begin + count]
        if len(words) < count:
            self.next = len(self.words)
            self.word(f"{count} entries of {what}, of which {len(words)} are there")
        self.next += count
        try:
            values = np.array(words, dtype=np.float64)
            wrong = ~((values >= 0) & (values < np.inf))
        except ValueError:
            wrong = np.array([not _is_amount(word) for word in words])
        if wrong.any():
            entry = int(wrong.argmax())
            expected = f"entry {entry} of {what}: a finite number, 0 or more"
            raise self.error(repr(words[entry][:40]), expected, begin + entry)
        with np.errstate(divide="ignore"):
            return np.log(values)


@reads_file
def read_uai(path: PathLike, evidence: PathLike | None = None) -> UAIModel:
    """Read a Markov network whose factors are over one or two variables each.

    Factors over the same variables are multiplied together.  An entry of 0 becomes -inf, which
    forbids what it stands for; so do observed variables with their other states.

    Parameters
    ----------
    path : path-like
        Plain or gzip file that starts with ``MARKOV``.
    evidence : path-like, optional
        The ``.evid`` file: how many variables were observed, then each one and its state.

    Returns
    -------
    UAIModel

    Raises
    ------
    ValueError
        For malformed files, and factors over three variables or more; it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.uai"
    >>> _ = path.write_text("MARKOV 2  2 2  2  1 0  2 1 0  2 1 1  4 1 0 1 1")
    >>> model = read_uai(path)
    >>> model.ends.tolist(), model.pair[0].tolist()
    ([[0, 1]], [[0.0, 0.0], [-inf, 0.0]])
    """
    tokens = _Tokens(path)
    kind = tokens.word("MARKOV")
    if kind != "MARKOV":
        raise tokens.error(repr(kind[:40]), "MARKOV (no other networks are read)")
    n = tokens.integer("the number of variables", 1)
    states = [tokens.integer(f"the number of states of variable {v}", 1, 2**20) for v in range(n)]
    scopes = [_scope(tokens, f, n) for f in range(tokens.integer("the number of factors", 0))]
    unary = [np.zeros(k) for k in states]
    pair: dict[tuple[int, int], np.ndarray] = {}
    constant = 0.0
    for f, scope in enumerate(scopes):
        shape = tuple(states[v] for v in scope)
        count = int(np.prod(shape))
        entries = tokens.integer(f"the number of entries of factor {f}", 0)
        if entries != count:
            raise tokens.error(f"{entries} entries", f"{count} entries of factor {f}, over {scope}")
        table = tokens.logarithms(count, f"factor {f}").reshape(shape)
        if not scope:
            constant += float(table)
        elif len(scope) == 1:
            unary[scope[0]] += table
        else:
            u, v = scope
            key, table = ((u, v), table) if u < v else ((v, u), table.T)
            pair[key] = pair[key] + table if key in pair else np.ascontiguousarray(table)
    if rest := len(tokens.words) - tokens.next:
        word = tokens.words[tokens.next][:40]
        expected = f"the end of the file after factor {len(scopes) - 1}"
        raise tokens.error(f"{rest} more words, the first {word!r}", expected, tokens.next)
    if evidence is not None:
        _observe(evidence, states, unary)
    ends = np.array(list(pair), dtype=np.int64).reshape(-1, 2)
    return UAIModel(np.array(states), ends, unary, list(pair.values()), constant)


def _scope(tokens: _Tokens, f: int, n: int) -> tuple[int, ...]:
    arity = tokens.integer(f"the number of variables of factor {f}", 0)
    if arity > 2:
        text = f"factor {f} over {arity} variables"
        raise tokens.error(text, "factors over one or two variables (larger ones are not read)")
    scope = tuple(tokens.integer(f"a variable of factor {f}", 0, n - 1) for _ in range(arity))
    if len(set(scope)) < arity:
        raise tokens.error(f"variable {scope[0]} twice in factor {f}", "two variables")
    return scope


def _observe(path: PathLike, states: list[int], unary: list[np.ndarray]) -> None:
    tokens = _Tokens(path)
    if not tokens.words:
        raise ValueError(f"{path}: found nothing; expected the number of observed variables")
    count = tokens.integer("the number of observed variables", 0)
    if len(tokens.words) != 1 + 2 * count:
        text = f"{len(tokens.words) - 1} numbers behind it"
        raise tokens.error(text, f"{2 * count}: {count} variables, each with its state")
    seen: dict[int, int] = {}
    for _ in range(count):
        v = tokens.integer("an observed variable", 0, len(states) - 1)
        s = tokens.integer(f"the state of variable {v}", 0, states[v] - 1)
        if seen.setdefault(v, s) != s:
            raise tokens.error(f"state {s} of variable {v}", f"state {seen[v]}, as before")
        unary[v][np.arange(states[v]) != s] = -np.inf


def _is_amount(word: str) -> bool:
    try:
        return 0 <= float(word) < float("inf")
    except ValueError:
        return False
