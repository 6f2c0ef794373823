"""The UAI format: Markov and Bayes networks as text, for labelings, marginals and evidence."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structsolve.io._text import PathLike, bad_line, number_of, reads_file, text_lines
from structsolve.plugins.mrf.tables._factors import (
    Scope,
    agreement,
    merge,
    observed_in,
    possible_entries,
)

#: Maximum size of the tables between larger factors and their variables (512 MB).
LARGEST_TABLES = 2**26
#: Error of sums of probabilities, which files round.
ROUNDED = 0.01
#: Maximum number of entries of a factor.
LARGEST_FACTOR = 2**40


class UAIModel(NamedTuple):
    """A pairwise model in logarithms; a labeling scores the same as in the network.

    `unary`, `ends` and `pair` are the arguments of :func:`structsolve.plugins.mrf.decode`.  The
    nodes are the variables of the network, followed by a node for each factor over three or more
    variables that no other factor covers: its states are the factor's nonzero entries, and tables
    of 0 and -inf connect it to its variables.  ``label[: model.n_variables]`` is the variables'
    part of a labeling.

    Parameters
    ----------
    states : ndarray of int, shape (n,)
        Number of states of each node.
    ends : ndarray of int, shape (m, 2)
        The nodes of each table, the smaller first.
    unary : list of ndarray
        Scores of the states of each node.
    pair : list of ndarray
        Scores of the pairs of states, a table per row of `ends`.
    constant : float
        The logarithm of factors over no variable: a labeling's score and this are the logarithm of
        the product of all factors.
    n_variables : int
        Number of the network's variables, which are the first nodes.
    """

    states: np.ndarray
    ends: np.ndarray
    unary: list[np.ndarray]
    pair: list[np.ndarray]
    constant: float
    n_variables: int


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
            values = np.array([number_of(word) for word in words])
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
    """Read a Markov or Bayes network, with factors over any number of variables.

    Factors over the same variables are multiplied together, and into a factor over three or more
    variables that covers theirs.  An entry of 0 becomes -inf, which forbids it; observed variables
    forbid their other states.

    Parameters
    ----------
    path : path-like
        Plain or gzip file that starts with ``MARKOV`` or ``BAYES``.  The factors of a Bayes network
        are probabilities of their last variable given the others, one factor for each variable.
    evidence : path-like, optional
        The ``.evid`` file: the number of observed variables, then each one and its state; before
        them, there may be the number of samples, 1.  Factors
        over three or more variables become factors over their unobserved variables.

    Returns
    -------
    UAIModel

    Raises
    ------
    ValueError
        For malformed files, factors with too many entries, and probabilities that do not sum to 1;
        it names the line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "toy.uai"
    >>> _ = path.write_text("MARKOV 2  2 2  2  1 0  2 1 0  2 1 1  4 1 0 1 1")
    >>> model = read_uai(path)
    >>> model.ends.tolist(), model.pair[0].tolist()
    ([[0, 1]], [[0.0, 0.0], [-inf, 0.0]])

    An odd number of ones among three variables, so that four entries are left:

    >>> from structsolve.plugins.mrf import decode
    >>> _ = path.write_text("MARKOV 3  2 2 2  2  3 0 1 2  1 0  8 0 1 1 0 1 0 0 1  2 1 3")
    >>> model = read_uai(path)
    >>> model.states.tolist(), model.ends.tolist()
    ([2, 2, 2, 4], [[0, 3], [1, 3], [2, 3]])
    >>> best = decode(model.unary, model.ends, model.pair, oracle="exact")
    >>> ones = int(best.label[: model.n_variables].sum())
    >>> ones % 2, round(float(np.exp(best.value + model.constant)), 9)
    (1, 3.0)
    """
    tokens = _Tokens(path)
    kind = tokens.word("MARKOV or BAYES")
    if kind not in ("MARKOV", "BAYES"):
        raise tokens.error(repr(kind[:40]), "MARKOV or BAYES (no other networks are read)")
    n = tokens.integer("the number of variables", 1)
    states = [tokens.integer(f"the number of states of variable {v}", 1, 2**20) for v in range(n)]
    scopes = [_scope(tokens, f, states) for f in range(tokens.integer("the number of factors", 0))]
    if kind == "BAYES" and sorted(scope[-1] for scope in scopes if scope) != list(range(n)):
        raise tokens.error(
            f"factors whose last variables are {[scope[-1:] for scope in scopes][:20]}",
            f"one factor for each of {n} variables, which is its last",
        )
    factors, starts = [], []
    for f, scope in enumerate(scopes):
        narrow, table = _factor(tokens, f, scope, states)
        if kind == "BAYES":
            _check_conditional(tokens, f, scope, table.reshape(-1, states[scope[-1]]))
        starts.append(tokens.next - table.size)
        factors.append((narrow, table))
    if rest := len(tokens.words) - tokens.next:
        word = tokens.words[tokens.next][:40]
        expected = f"the end of the file after factor {len(scopes) - 1}"
        raise tokens.error(f"{rest} more words, the first {word!r}", expected, tokens.next)
    observed = {} if evidence is None else _observed(evidence, states)
    factors = [
        observed_in(scope, table, observed) if len(scope) > 2 else (scope, table)
        for scope, table in factors
    ]
    return _pairwise(tokens, states, factors, starts, observed)


def _factor(tokens: _Tokens, f: int, scope: Scope, states: list[int]) -> tuple[Scope, np.ndarray]:
    count = math.prod(states[v] for v in scope)
    entries = tokens.integer(f"the number of entries of factor {f}", 0)
    if entries != count:
        raise tokens.error(f"{entries} entries", f"{count} entries of factor {f}, over {scope}")
    table = tokens.logarithms(count, f"factor {f}")
    if len(scope) > 2:
        # Variables of one state carry no information, and the number of axes of arrays is limited.
        scope = tuple(v for v in scope if states[v] > 1)
    return scope, table.reshape([states[v] for v in scope])


def _check_conditional(tokens: _Tokens, f: int, scope: Scope, table: np.ndarray) -> None:
    """Refuse probabilities of the last variable that do not sum to 1."""
    sums = np.exp(table).sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > ROUNDED)
    if wrong.size:
        row, size = int(wrong[0]), table.shape[-1]
        text = f"probabilities of factor {f} that sum to {sums[row]:.6g}"
        expected = f"1: entries {row * size} to {(row + 1) * size - 1} are those of variable "
        position = tokens.next - table.size + row * size
        raise tokens.error(text, f"{expected}{scope[-1]} given the others", position)


def _pairwise(
    tokens: _Tokens,
    states: list[int],
    factors: list[tuple[Scope, np.ndarray]],
    starts: list[int],
    observed: dict[int, int],
) -> UAIModel:
    """Nodes and edges for the factors; `starts`: positions of their entries in the file."""
    n, constant = len(states), 0.0
    unary = [np.zeros(k) for k in states]
    for v, state in observed.items():
        unary[v][np.arange(states[v]) != state] = -np.inf
    merged = merge(factors)
    for scope, (table, _) in merged.items():
        if not scope:
            constant += float(table)
        elif len(scope) == 1:
            unary[scope[0]] += table
    pair = {
        scope: np.ascontiguousarray(table)
        for scope, (table, _) in merged.items()
        if len(scope) == 2
    }
    size = 0
    for scope, (table, f) in merged.items():
        if len(scope) < 3:
            continue
        entries = possible_entries(scope, table, unary)
        size += len(entries) * sum(states[v] for v in scope)
        if size > LARGEST_TABLES:
            text = f"{len(entries)} entries that are not 0 in factor {f}, over {scope}"
            expected = (
                "fewer: the tables between factors over three or more variables and these would "
                f"have {size} numbers or more, of at most {LARGEST_TABLES}"
            )
            raise tokens.error(text, expected, starts[f])
        for axis, v in enumerate(scope):
            pair[v, len(unary)] = agreement(states[v], entries[:, axis])
        unary.append(table[tuple(entries.T)])
    ends = np.array(list(pair), dtype=np.int64).reshape(-1, 2)
    sizes = np.array([len(scores) for scores in unary])
    return UAIModel(sizes, ends, unary, list(pair.values()), constant, n)


def _scope(tokens: _Tokens, f: int, states: list[int]) -> Scope:
    arity = tokens.integer(f"the number of variables of factor {f}", 0)
    scope: dict[int, None] = {}
    size = 1
    for _ in range(arity):
        v = tokens.integer(f"a variable of factor {f}", 0, len(states) - 1)
        if v in scope:
            raise tokens.error(f"variable {v} twice in factor {f}", "different variables")
        scope[v] = None
        size *= states[v]
        if size > LARGEST_FACTOR:
            text = f"{size} entries of factor {f}, over {len(scope)} variables and more"
            raise tokens.error(text, f"at most {LARGEST_FACTOR} entries")
    return tuple(scope)


@reads_file
def _observed(path: PathLike, states: list[int]) -> dict[int, int]:
    """Read the state of each observed variable."""
    tokens = _Tokens(path)
    if not tokens.words:
        raise ValueError(f"{path}: found nothing; expected the number of observed variables")
    if len(tokens.words) % 2 == 0:  # that of samples comes first
        tokens.integer("the number of samples", 1, 1)
    before = tokens.next + 1
    count = tokens.integer("the number of observed variables", 0)
    if len(tokens.words) != before + 2 * count:
        text = f"{len(tokens.words) - before} numbers after it"
        raise tokens.error(text, f"{2 * count}: {count} variables, each with its state")
    seen: dict[int, int] = {}
    for _ in range(count):
        v = tokens.integer("an observed variable", 0, len(states) - 1)
        s = tokens.integer(f"the state of variable {v}", 0, states[v] - 1)
        if seen.setdefault(v, s) != s:
            raise tokens.error(f"state {s} of variable {v}", f"state {seen[v]}, as before")
    return seen


def _is_amount(word: str) -> bool:
    try:
        return 0 <= number_of(word) < float("inf")
    except ValueError:
        return False
