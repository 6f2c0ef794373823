"""Estimates of a run's remaining time, from its gaps."""

from __future__ import annotations

import math

# Share of the gaps seen that is used: the first passes behave differently.
LATE = 0.5
LEAST = 3


class Remaining:
    """Estimates the passes to a relative gap of ``tol``.

    The logarithm of the gap is a line over the passes where a solver converges linearly, and over
    their logarithm where the gap falls like a power: of both fits to the later half of the gaps,
    the closer one is continued.

    Parameters
    ----------
    tol : float
    max_iter : int, optional
        Passes at most.

    Examples
    --------
    >>> remaining = Remaining(tol=1e-3)
    >>> for k in range(1, 6):
    ...     remaining.see(k, 0.5**k, certified=True)
    >>> round(remaining.passes(5), 2)                    # 2^-k = 1e-3 at k = 9.97
    4.97
    """

    def __init__(self, tol: float, max_iter: int | None = None):
        self.tol, self.max_iter = tol, max_iter
        self._gaps: dict[bool, list[tuple[int, float]]] = {True: [], False: []}

    def see(self, done: int, gap: float | None, certified: bool) -> None:
        """Record a relative gap.

        Parameters
        ----------
        done : int
            Passes made.
        gap : float, optional
            None and invalid numbers are ignored.
        certified : bool
            Estimates count as long as there are too few certified gaps.
        """
        if gap is not None and 0 < gap < math.inf:
            self._gaps[bool(certified)].append((done, gap))

    def passes(self, done: int) -> float | None:
        """Return the estimated number of remaining passes.

        Parameters
        ----------
        done : int
            Passes made.

        Returns
        -------
        float or None
            None if unknown; the passes up to ``max_iter`` if the gap does not fall.
        """
        most = None if self.max_iter is None else float(max(self.max_iter - done, 0))
        seen = self._gaps[True] if len(self._gaps[True]) >= LEAST else self._gaps[False]
        if len(seen) < LEAST or not self.tol > 0:
            return most if len(seen) >= LEAST else None
        late = seen[-max(LEAST, round(LATE * len(seen))) :]
        logs = [math.log(gap) for _, gap in late]
        fits = []
        for scale, back in ((float, float), (math.log, math.exp)):
            slope, start, error = _line([scale(k) for k, _ in late], logs)
            if slope < 0:
                position = (math.log(self.tol) - start) / slope
                end = back(position) if position < 700 else math.inf
                fits.append((error, max(end - done, 0.0)))
        left = min(fits)[1] if fits else math.inf
        if most is not None:
            left = min(left, most)
        return left if left < math.inf else None


def _line(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """Return slope, value at 0 and squared error of the line of least squares."""
    mx, my = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mx) ** 2 for a in x)
    slope = sum((a - mx) * (b - my) for a, b in zip(x, y)) / spread if spread > 0 else 0.0
    start = my - slope * mx
    return slope, start, sum((b - start - slope * a) ** 2 for a, b in zip(x, y))


def duration(seconds: float) -> str:
    """Return seconds in words: ``"8 s"``, ``"3 min"``, ``"2.5 h"``.

    Parameters
    ----------
    seconds : float

    Returns
    -------
    str

    Examples
    --------
    >>> duration(0.4), duration(90), duration(9000)
    ('1 s', '2 min', '2.5 h')
    """
    if seconds < 60:
        return f"{max(1, math.ceil(seconds))} s"
    if seconds < 3600:
        return f"{math.ceil(seconds / 60)} min"
    return f"{seconds / 3600:.2g} h"
