"""Metrics by name that print as a table, and the errors behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple

from structsolve.utils.suggest import a_type

FIGURES = ("precision", "recall", "f1")
#: Names of averages in a table.
AVERAGES = {name: f"{name} mean" for name in ("micro", "macro", "weighted", "samples")}
AVERAGES["hierarchical"] = "hierarchical"


@contextmanager
def of_argument(name: str) -> Iterator[None]:
    """Begin errors about the form of an argument with its name, unless they name it.

    Parameters
    ----------
    name : str

    Examples
    --------
    >>> with of_argument("y_pred"):
    ...     len(None)
    Traceback (most recent call last):
        ...
    ValueError: y_pred: object of type 'NoneType' has no len()
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if name in str(error):
            raise
        raise ValueError(f"{name}: {error}") from error


class Report(dict):
    """Metrics of predictions: a dict that prints as a table.

    Rows are the entries of ``per_class`` or ``per_type``, then the averages; other numbers follow
    below.  ``dict(report)`` prints as a plain dict.

    Examples
    --------
    >>> from structsolve.evaluation.report import row_of
    >>> print(Report(row_of([0.5, 1, 2 / 3], 2), per_class={"a": row_of([0.5, 1, 2 / 3], 2)}))
           precision    recall        f1   support
    a         0.5000    1.0000    0.6667         2
    <BLANKLINE>
    all       0.5000    1.0000    0.6667         2
    """

    def __str__(self) -> str:
        rows = {str(name): row for name, row in self._parts().items()}
        means = {AVERAGES[name]: self[name] for name in AVERAGES if name in self}
        if all(name in self for name in FIGURES):
            means.pop(AVERAGES["micro"], None)  # the same
            means = {"all": self, **means}
        width = max(map(len, (*rows, *means, "label")), default=0) + 2
        blocks = []
        if rows or means:
            head = " " * width + "".join(f"{name:>10}" for name in (*FIGURES, "support"))
            blocks.append([head, *(_line(name, row, width) for name, row in rows.items())])
            blocks.append([_line(name, row, width) for name, row in means.items()])
        blocks.append(
            [
                f"{name.replace('_', ' ')} {_number(value)}"
                for name, value in self.items()
                if isinstance(value, (int, float))
                and not ("all" in means and name in (*FIGURES, "support"))
            ]
        )
        return "\n\n".join("\n".join(block) for block in blocks if block)

    __repr__ = __str__

    def _parts(self) -> dict[Any, Any]:
        return self.get("per_class", self.get("per_type", {}))


def _line(name: str, row: dict[str, Any], width: int) -> str:
    figures = "".join(f"{row[figure]:>10.4f}" for figure in FIGURES)
    return f"{name:<{width}}{figures}{row['support']:>10}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def row_of(shares: Sequence[float], support: int) -> dict[str, Any]:
    """Return a row of a report.

    Parameters
    ----------
    shares : sequence of float
        Precision, recall and F1.
    support : int

    Returns
    -------
    dict
    """
    return {**dict(zip(FIGURES, map(float, shares), strict=True)), "support": int(support)}


class Error(NamedTuple):
    """A wrong label or span, in its context.

    Parameters
    ----------
    example : int
        Number of the example.
    start, end : int
        The tokens, of both labels; `end` is one past the last token.
    kind : str
        "wrong class", and for spans also "wrong border", "wrong class and border", "missing" or
        "spurious".
    true, predicted : object
        The label, or the span (start, end, type), of each side; None if there is none.
    context : str
        The tokens around, the wrong ones in brackets; empty if no tokens were given.
    """

    example: int
    start: int
    end: int
    kind: str
    true: Any
    predicted: Any
    context: str

    def __str__(self) -> str:
        place = f"example {self.example}, {self.start}:{self.end}"
        told = f"{place}, {self.kind}: true {_label(self.true)}, predicted {_label(self.predicted)}"
        return f"{told}\n    {self.context}" if self.context else told


class ErrorList(list):
    """Errors in the order of the tokens: a list of :class:`Error` that prints as text.

    ``pandas.DataFrame(errors)`` is a table of them.

    Parameters
    ----------
    iterable : iterable of Error

    Examples
    --------
    >>> from structsolve.evaluation.report import Error
    >>> print(ErrorList([Error(0, 1, 2, "wrong class", "N", "V", "the [run] was")]))
    example 0, 1:2, wrong class: true N, predicted V
        the [run] was
    """

    def __str__(self) -> str:
        return "\n".join(map(str, self))


def _label(label: Any) -> str:
    if isinstance(label, tuple):
        return f"{label[2]} {label[0]}:{label[1]}"
    return "-" if label is None else str(label)


def in_context(tokens: Any, example: int, start: int, end: int, context: int) -> str:
    """Return some tokens of an example in brackets, with those around them.

    Parameters
    ----------
    tokens : sequence of sequences, or None
        The tokens of every example.
    example, start, end : int
    context : int
        Number of tokens on either side.

    Returns
    -------
    str
        Empty without tokens.
    """
    if tokens is None:
        return ""
    words = [str(word) for word in tokens[example]]
    left = ["..."] * (start > context) + words[max(start - context, 0) : start]
    right = words[end : end + context] + ["..."] * (end + context < len(words))
    return " ".join([*left, f"[{' '.join(words[start:end])}]", *right])


def checked_lengths(lengths: Any, tokens: Any, context: Any, at_least: bool = False) -> list[int]:
    """Return the lengths of label sequences, after checks of the arguments of ``errors``.

    Parameters
    ----------
    lengths : ndarray of int
    tokens : sequence of sequences, or None
    context : int
    at_least : bool, default=False
        As of :func:`check_tokens`.

    Returns
    -------
    list of int

    Raises
    ------
    ValueError
        The message names the argument.
    """
    if not isinstance(context, Integral) or context < 0:
        raise ValueError(f"context is {context!r}, expected a number of tokens >= 0")
    if tokens is not None:
        check_tokens(tokens, lengths.tolist(), at_least=at_least)
    return lengths.tolist()


def check_tokens(
    tokens: Any, lengths: Sequence[int], name: str = "tokens", at_least: bool = False
) -> None:
    """Refuse tokens of other lengths than the labels have.

    Parameters
    ----------
    tokens : sequence of sequences
    lengths : sequence of int
        Lengths of the label sequences.
    name : str
        Name of the tokens in messages.
    at_least : bool, default=False
        Lengths are the ends of the last spans: there may be more tokens.

    Raises
    ------
    ValueError
        The message names the example.
    """
    if isinstance(tokens, str) or not hasattr(tokens, "__len__") or len(tokens) != len(lengths):
        raise ValueError(
            f"{name} is {a_type(tokens)}; expected {len(lengths)} sequences of tokens, as "
            "y_true has sequences"
        )
    for i, (words, length) in enumerate(zip(tokens, lengths, strict=True)):
        listed = not isinstance(words, str) and hasattr(words, "__len__")
        if not listed or len(words) < length or (len(words) > length and not at_least):
            expected = f"{length} tokens, as y_true[{i}] has labels"
            if at_least:
                expected = f"at least {length} tokens, as spans of example {i} end there"
            raise ValueError(f"{name}[{i}] is {words!r:.60}; expected {expected}")
