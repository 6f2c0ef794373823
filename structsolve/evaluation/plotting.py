# Pictures of training: objectives and duality gap over time, predicted sequences of images, and
# the label plane of one example with the path of a search over it.
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from structsolve.utils.params import check_choice

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_convergence", "plot_label_plane", "plot_sequences"]

# Okabe and Ito's colours, safe for colour blindness; black and yellow left out.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_INK, _GRID = "#333333", "#dddddd"


def plot_convergence(
    histories: Mapping[str, Any] | Sequence[Any],
    path: str | PathLike[str] | None = None,
    x: str = "seconds",
    tol: float | None = None,
) -> Figure:
    """Draw the primal and dual objective, and the relative gap, of training runs.

    Parameters
    ----------
    histories : dict of str to list of dict or model, or list of models
        ``history_`` of fitted models, or the models themselves, by name; in a list they are named
        after their solvers.  A pass may lack ``primal`` or ``dual`` (None or NaN), as SGD has no
        dual; ``seconds`` are those of the pass.  Estimates, passes that are not ``certified``, are
        drawn faint.
    path : path-like, optional
        Where to write the picture; the ending sets the format (png, svg, pdf).
    x : {"seconds", "passes"}, default="seconds"
        The horizontal axis.
    tol : float, optional
        Draw a line at the gap where training should stop.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: no window opens, no global state changes.

    Raises
    ------
    ValueError
        For another `x`, or no passes.

    Examples
    --------
    >>> run = [{"primal": 3.0, "dual": 0.5, "seconds": 0.1}, {"primal": 2.0, "dual": 1.9}]
    >>> figure = plot_convergence({"bcfw": run}, x="passes")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Objective', 'Relative gap']
    """
    check_choice("x", x, ("seconds", "passes"))
    runs = _runs(histories)
    figure = _figure(9.6, 3.9)
    objective, gaps = figure.subplots(1, 2)
    levels: list[float] = []
    highest, faintly = -np.inf, False
    for (name, history), color in zip(runs.items(), cycle(COLORS), strict=False):
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
            faintly = True
        levels += _window(primal[sure], dual)
        highest = max(highest, *primal[sure][np.isfinite(primal[sure])], -np.inf)
    objective.plot([], [], color=_INK, linewidth=1.8, label="primal (upper)")
    objective.plot([], [], color=_INK, linewidth=1.4, linestyle=(0, (4, 2)), label="dual (lower)")
    if faintly:
        objective.plot([], [], color=_INK, linewidth=1.0, alpha=0.35, label="estimates, not proved")
    if levels:
        low, high = min(levels), max(levels)
        pad = 0.05 * (high - low or abs(high) or 1.0)
        objective.set_ylim(low - pad, high + pad)
        if highest > high + pad:
            note = f"first passes lie above, up to {highest:.3g}"
            objective.set_title(note, loc="right", fontsize=8, color=_INK)
    gaps.set_yscale("log")
    if tol is not None:
        _mark_tol(gaps, tol)
    for axes, title in ((objective, "Objective"), (gaps, "Relative gap")):
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=_INK)
        axes.set_xlabel("seconds" if x == "seconds" else "passes over the data", color=_INK)
        axes.grid(True, color=_GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        _plain_frame(axes)
        axes.margins(x=0.02)
    objective.legend(frameon=False, fontsize=9, labelcolor=_INK)
    return _written(figure, path)


def _mark_tol(gaps: Axes, tol: float) -> None:
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


def plot_label_plane(
    points: Any = None,
    path: Sequence[Mapping[str, float]] = (),
    psi: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    ax: Axes | None = None,
    file: str | PathLike[str] | None = None,
) -> Figure:
    """Draw the labels of one example as points (h, g), and a search over them.

    Parameters
    ----------
    points : array of shape (n_labels, 2), optional
        h (margin error) and g (loss) of all labels, where they can be listed.  Their upper hull,
        the largest h for every g, is all that a lambda-oracle can return.
    path : list of dict, optional
        Answers of the oracle in order: ``h``, ``g``, and if known ``lam`` and ``value``.  The best
        is the one of the largest value (that of ``psi`` where the values are missing).
    psi : callable, optional
        Surrogate ``psi(h, g)`` of two arrays: its contours are drawn, the one through the best
        point in full.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    file : path-like, optional
        Where to write the picture; the ending sets the format (png, svg, pdf).

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        For wrong shapes or keys, values that are not finite, or nothing to draw.

    Examples
    --------
    >>> labels = [[1.0, 0.0], [3.0, 1.0], [2.0, 2.0], [-1.0, 3.0]]
    >>> path = [{"lam": 1.0, "h": 2.0, "g": 2.0, "value": 4.0}]
    >>> figure = plot_label_plane(labels, path, psi=lambda h, g: h * g)
    >>> figure.axes[0].get_xlabel()
    'h: margin error'
    """
    every, visited, values = _plane(points, path, psi)
    figure: Any = _figure(5.6, 4.6) if ax is None else ax.figure
    axes: Any = figure.subplots() if ax is None else ax
    shown = np.vstack([every, visited])
    low, high = shown.min(axis=0), shown.max(axis=0)
    pad = 0.12 * np.where(high > low, high - low, 1.0)
    axes.set_xlim(low[0] - pad[0], high[0] + pad[0])
    axes.set_ylim(low[1] - pad[1], high[1] + pad[1])
    best = int(np.nanargmax(values)) if np.isfinite(values).any() else None
    if psi is not None:
        _contours(axes, psi, shown, None if best is None else visited[best])
    if len(every):
        axes.scatter(*every.T, s=14, color="#999999", linewidths=0, label="labels", zorder=2)
        hull = upper_hull(every)
        axes.plot(*hull.T, color=_INK, linewidth=1.0, label="upper hull", zorder=2)
    if len(visited):
        axes.plot(*visited.T, color=COLORS[0], linewidth=0.8, alpha=0.5, zorder=3)
        axes.scatter(*visited.T, s=34, color=COLORS[0], label="asked", zorder=4)
        _number(axes, visited)
    if best is not None:
        axes.scatter(
            *visited[best], s=150, marker="*", color=COLORS[1], label="best", zorder=5, linewidths=0
        )
    axes.set_xlabel("h: margin error", color=_INK)
    axes.set_ylabel("g: loss", color=_INK)
    _plain_frame(axes)
    axes.legend(frameon=False, fontsize=9, labelcolor=_INK)
    return _written(figure, file)


def upper_hull(points: np.ndarray) -> np.ndarray:
    """Return the corners with the largest h for their g, in order of g.

    Parameters
    ----------
    points : ndarray of shape (n_labels, 2)
        The columns h and g.

    Returns
    -------
    ndarray of shape (n_corners, 2)

    Examples
    --------
    >>> upper_hull(np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [2.0, 2.0]]
    """
    corners: list[np.ndarray] = []
    for h, g in points[np.lexsort((-points[:, 0], points[:, 1]))]:
        if corners and corners[-1][1] == g:
            continue
        while len(corners) > 1:
            (h0, g0), (h1, g1) = corners[-2:]
            if (h1 - h0) * (g - g0) > (h - h0) * (g1 - g0):
                break
            corners.pop()
        corners.append(np.array([h, g]))
    return np.array(corners)


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

    Raises
    ------
    ValueError
        For no sequence, or unequal numbers of them.
    """
    n, longest = len(images), max(map(len, truth), default=0)
    if n == 0 or len(truth) != n or any(len(labels) != n for labels in predictions.values()):
        sizes = ", ".join(str(len(s)) for s in (images, truth, *predictions.values()))
        raise ValueError(f"found {sizes} sequences; expected the same number of all, at least one")
    step = 0.42 * (len(predictions) + 1)
    box = {"boxstyle": "round,pad=0.15", "fc": COLORS[1], "ec": "none"}
    mark = {"color": "white", "fontweight": "bold", "bbox": box}
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
                style = mark if label != right else {"color": _INK}
                axes.text(t + 0.475, y, str(label), ha="center", va="center", fontsize=10, **style)
    axes.set_xlim(-1.6, longest)
    axes.set_ylim(n * (1.25 + step), -0.1)
    axes.set_axis_off()
    return _written(figure, path)


def _written(figure: Figure, path: Any) -> Figure:
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _runs(histories: Any) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return histories by name, from a dict of histories or models or from a list of models."""
    runs: dict[str, Any] = {}
    if isinstance(histories, Mapping):
        runs = {name: getattr(run, "history_", run) for name, run in histories.items()}
    elif isinstance(histories, (list, tuple)) and all(hasattr(m, "history_") for m in histories):
        for model in histories:
            solver = getattr(model, "solver", type(model).__name__)
            name = solver if isinstance(solver, str) else getattr(solver, "name", str(solver))
            same = sum(known.split(" #")[0] == name for known in runs)
            runs[f"{name} #{same + 1}" if same else name] = model.history_
    if not runs or not all(runs.values()):
        raise ValueError(
            "histories: found no passes; expected a dict of name to model.history_, or a list of "
            "fitted models"
        )
    return runs


def _plane(points: Any, path: Any, psi: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all points, those of the path, and the values of the latter (NaN if unknown)."""
    every = np.zeros((0, 2)) if points is None else np.asarray(points, dtype=float)
    if every.ndim != 2 or every.shape[1] != 2 or not np.isfinite(every).all():
        raise ValueError(
            f"points: found an array of shape {every.shape}, expected finite numbers of shape "
            "(n_labels, 2), the columns h and g"
        )
    try:
        visited = np.array([[float(one["h"]), float(one["g"])] for one in path]).reshape(-1, 2)
        values = np.array([float(one.get("value", np.nan)) for one in path])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"path: found {type(error).__name__} {error}; expected a list of dicts with the keys h "
            "and g, and if known lam and value"
        ) from None
    if not np.isfinite(visited).all():
        raise ValueError("path: found NaN or infinity in h or g, expected finite numbers")
    if len(every) + len(visited) == 0:
        raise ValueError("found neither points nor a path, expected at least one of them")
    if psi is not None and np.isnan(values).all() and len(visited):
        values = np.asarray(psi(visited[:, 0], visited[:, 1]), dtype=float)
    return every, visited, values


def _contours(axes: Axes, psi: Any, shown: np.ndarray, best: np.ndarray | None) -> None:
    """Draw level sets of psi over the axes, that of the best point in full."""
    h, g = np.meshgrid(np.linspace(*axes.get_xlim(), 200), np.linspace(*axes.get_ylim(), 200))
    # A loss of less than nothing is outside the plane, unless the search went there.
    with np.errstate(all="ignore"):
        level = np.asarray(psi(h, np.where(g < min(shown[:, 1].min(), 0), np.nan, g)), dtype=float)
    level[~np.isfinite(level)] = np.nan
    if not np.isfinite(level).any() or np.nanmax(level) == np.nanmin(level):
        return
    lines = axes.contour(h, g, level, levels=9, colors=COLORS[5], linewidths=0.7, alpha=0.8)
    axes.clabel(lines, fontsize=7)
    if best is not None:
        top = float(np.asarray(psi(best[:1], best[1:])).ravel()[0])
        if np.nanmin(level) < top < np.nanmax(level):
            axes.contour(h, g, level, levels=[top], colors=COLORS[1], linewidths=1.2)


def _plain_frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.tick_params(colors=_INK, labelsize=9)


def _number(axes: Axes, visited: np.ndarray) -> None:
    """Write beside each point in which calls it was the answer."""
    calls: dict[tuple[float, float], list[str]] = {}
    for number, (h, g) in enumerate(visited.tolist(), start=1):
        calls.setdefault((h, g), []).append(str(number))
    for place, numbers in calls.items():
        text = ", ".join(numbers if len(numbers) < 5 else [*numbers[:2], "...", numbers[-1]])
        axes.annotate(
            text, place, xytext=(5, 5), textcoords="offset points", fontsize=9, color=COLORS[0]
        )


def _figure(width: float, height: float) -> Figure:
    try:
        # Heavy, and optional.
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
