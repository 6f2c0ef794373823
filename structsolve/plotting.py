# Pictures of training: objectives and duality gap over time, and predicted sequences of images.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

__all__ = ["plot_convergence", "plot_sequences"]

# Okabe and Ito's colours, which colour-blind people tell apart; black and yellow left out.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INK, _GRID = "#333333", "#dddddd"


def plot_convergence(
    histories: Mapping[str, Sequence[Mapping[str, Any]]],
    path: str | PathLike[str] | None = None,
    x: str = "seconds",
    tol: float | None = None,
) -> Figure:
    """Draw the primal and dual objective, and the relative gap, of training runs.

    Parameters
    ----------
    histories : dict of str to list of dict
        ``history_`` of fitted models by name.  A pass may lack ``primal`` or ``dual`` (None or
        NaN), as SGD has no dual; ``seconds`` are those of the pass.  Estimates, passes that are
        not ``certified``, are drawn faint.
    path : path-like, optional
        Where to write the picture; the ending says the format (png, svg, pdf).
    x : {"seconds", "passes"}, default="seconds"
        What to draw over.
    tol : float, optional
        A line at the gap where training was to stop.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: no window opens, no global state changes.

    Examples
    --------
    >>> run = [{"primal": 3.0, "dual": 0.5, "seconds": 0.1}, {"primal": 2.0, "dual": 1.9}]
    >>> figure = plot_convergence({"bcfw": run}, x="passes")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Objective', 'Relative gap']
    """
    if x not in ("seconds", "passes"):
        raise ValueError(f"x: found {x!r}; expected 'seconds' or 'passes'")
    if not isinstance(histories, Mapping) or not histories or not all(histories.values()):
        raise ValueError("histories: found no passes; expected a dict of name to model.history_")
    figure = _figure(9.6, 3.9)
    objective, gaps = figure.subplots(1, 2)
    levels: list[float] = []
    for (name, history), color in zip(histories.items(), cycle(COLORS), strict=False):
        primal, dual = _column(history, "primal"), _column(history, "dual")
        sure = np.array([bool(one.get("certified", True)) for one in history])
        seconds = np.nan_to_num(_column(history, "seconds"))
        places = np.cumsum(seconds) if x == "seconds" else np.arange(1.0, len(history) + 1)
        style = {"color": color, "marker": "o" if sure.sum() < 3 else None, "markersize": 4}
        faint = {"color": color, "linewidth": 1.0, "alpha": 0.35}
        with np.errstate(invalid="ignore", divide="ignore"):
            best = np.fmin.accumulate(primal[sure]), np.fmax.accumulate(dual)[sure]
            gap = (best[0] - best[1]) / np.abs(best[0])
            guess = _column(history, "gap") / np.abs(primal)
        objective.plot(places[sure], primal[sure], label=name, linewidth=1.8, **style)
        objective.plot(places, dual, linewidth=1.4, linestyle=(0, (4, 2)), **style)
        gaps.plot(places[sure], np.where(gap > 0, gap, np.nan), label=name, linewidth=1.8, **style)
        if not sure.all():
            objective.plot(places, primal, **faint)
            gaps.plot(places, np.where(guess > 0, guess, np.nan), **faint)
        levels += _window(primal[sure], dual)
    objective.plot([], [], color=_INK, linewidth=1.8, label="primal (upper)")
    objective.plot([], [], color=_INK, linewidth=1.4, linestyle=(0, (4, 2)), label="dual (lower)")
    if levels:
        low, high = min(levels), max(levels)
        pad = 0.05 * (high - low or abs(high) or 1.0)
        objective.set_ylim(low - pad, high + pad)
    gaps.set_yscale("log")
    if tol is not None:
        gaps.axhline(tol, color=_INK, linewidth=0.9, linestyle=":")
        gaps.annotate(
            f"tol = {tol:g}",
            (0, tol),
            xycoords=("axes fraction", "data"),
            xytext=(3, 3),
            textcoords="offset points",
            color=_INK,
            fontsize=8,
        )
    for axes, title in ((objective, "Objective"), (gaps, "Relative gap")):
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=_INK)
        axes.set_xlabel("seconds" if x == "seconds" else "passes over the data", color=_INK)
        axes.grid(True, color=_GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color("#999999")
        axes.tick_params(colors=_INK, labelsize=9)
        axes.margins(x=0.02)
    objective.legend(frameon=False, fontsize=9, labelcolor=_INK)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def plot_sequences(
    images: Sequence[Any],
    truth: Sequence[Any],
    predictions: Mapping[str, Sequence[Any]],
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw sequences of images, one row each, with the true and the predicted labels below.

    Parameters
    ----------
    images : sequence of ndarray (length, height, width)
    truth : sequence of label sequences
    predictions : dict of str to sequence of label sequences
        By the name of the model; wrong labels are marked.
    path : path-like, optional
        Where to write the picture.

    Returns
    -------
    matplotlib.figure.Figure
    """
    n, longest = len(images), max(map(len, truth), default=0)
    if n == 0 or len(truth) != n or any(len(labels) != n for labels in predictions.values()):
        found = ", ".join(str(len(s)) for s in (images, truth, *predictions.values()))
        raise ValueError(f"found {found} sequences; expected the same number of all, at least one")
    step = 0.42 * (len(predictions) + 1)
    figure = _figure(0.9 + 0.75 * longest, (1.25 + step) * n * 0.62)
    axes = figure.subplots()
    for i, (strip, labels) in enumerate(zip(images, truth, strict=True)):
        top = i * (1.25 + step)
        lines = [("truth", labels), *((name, rows[i]) for name, rows in predictions.items())]
        for t, image in enumerate(strip):
            axes.imshow(image, cmap="gray_r", extent=(t, t + 0.95, top + 1, top), aspect="auto")
        for row, (name, line) in enumerate(lines):
            y = top + 1.22 + 0.42 * row
            axes.text(-0.15, y, name, ha="right", va="center", fontsize=8, color=_INK)
            for t, (label, right) in enumerate(zip(line, labels, strict=True)):
                wrong = label != right
                axes.text(
                    t + 0.475,
                    y,
                    str(label),
                    ha="center",
                    va="center",
                    fontsize=10,
                    color="white" if wrong else _INK,
                    fontweight="bold" if wrong else "normal",
                    bbox={"boxstyle": "round,pad=0.15", "fc": COLORS[1], "ec": "none"}
                    if wrong
                    else None,
                )
    axes.set_xlim(-1.6, longest)
    axes.set_ylim(n * (1.25 + step), -0.1)
    axes.set_axis_off()
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plotting needs matplotlib, which is not installed; run "
            "`pip install 'structsolve-learn[plot]'`"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _column(history: Sequence[Mapping[str, Any]], key: str) -> np.ndarray:
    values = (one.get(key) for one in history)
    return np.array([np.nan if value is None else float(value) for value in values])


def _window(primal: np.ndarray, dual: np.ndarray) -> list[float]:
    """Values the picture must show: without a limit the first passes would flatten the rest."""
    primal, dual = primal[np.isfinite(primal)], dual[np.isfinite(dual)]
    best = primal.min() if primal.size else dual.max() if dual.size else 0.0
    reach = 1.1 * abs(best)
    shown = np.r_[np.minimum(primal, best + reach), np.maximum(dual, best - reach)]
    return [float(shown.min()), float(shown.max())] if shown.size else []
