"""Metrics by name that print as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIGURES = ("precision", "recall", "f1")
#: Names of averages in a table.
AVERAGES = {name: f"{name} mean" for name in ("micro", "macro", "weighted", "samples")}
AVERAGES["hierarchical"] = "hierarchical"


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
            means["all"] = self
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
        parts: dict[Any, Any] = self.get("per_class", self.get("per_type", {}))
        return parts


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
