"""How often each search misses: `python -m reference.search_counts` (from tests/) prints the table.

Its figures stand in the docstring of `reference.searches`.
"""

import numpy as np

from .psi import Psi
from .searches import (
    Plane,
    angular_search,
    binary_search,
    bisecting_search,
    hull_search,
    integral_maximum,
    sarawagi_gupta_search,
)

KINDS = ("integers", "counts", "normal", "h <= 0", "one point")
# What slack rescaling maximises where h = 1 + m(y).
PRODUCT = Psi("product", lambda h, g: h * g, lambda h, g: (g.copy(), h.copy()))


def random_plane(kind, rng):
    """(h, g) of up to 13 labels, the truth (1, 0) first."""
    n = 1 if kind == "one point" else rng.integers(1, 13)
    h, g = 1 + 2 * rng.normal(size=n), rng.integers(0, 6, n).astype(float)
    if kind == "integers":
        h = rng.integers(-4, 8, n).astype(float)
    elif kind == "normal":
        g = 3 * np.abs(rng.normal(size=n))
    elif kind == "h <= 0":
        h = -rng.integers(0, 5, n).astype(float)
    return np.append(1.0, h), np.append(0.0, g)


def angular_start(h, g):
    """lam0 of the angular search: the largest h over the largest g."""
    return max(h.max(), 1e-3) / max(g.max(), 1e-3)


def run(name, h, g, seed):
    """(value found, best value, calls) of one search; of Sarawagi-Gupta's in h - xi/g."""
    plane = Plane(h, g, seed, truth=0)
    best = max(integral_maximum(h, g, PRODUCT)[1], 0.0)
    if name == "binary":
        answer = binary_search(plane)
    elif name == "bisecting":
        answer = bisecting_search(plane)
    elif name == "angular":
        answer = angular_search(plane, angular_start(h, g))
    elif name == "convex hull":
        answer = hull_search(plane, PRODUCT)
    else:
        xi = (0.1, 1.0, 5.0)[seed % 3]
        answer = sarawagi_gupta_search(plane, xi)
        inside = (h > 0) & (g > 0)
        best = np.max(h[inside] - xi / g[inside], initial=0.0)
        return max(answer.value, 0.0), best, answer.calls
    return answer.value, best, answer.calls


NAMES = ("sarawagi-gupta", "binary", "bisecting", "convex hull", "angular")


def main(n=4000):
    """Print the table."""
    print(f"{'':16}" + "".join(f"{name:>24}" for name in NAMES))
    for kind in KINDS[:4]:
        line = f"{kind:16}"
        for name in NAMES:
            rng = np.random.default_rng(0)
            missed, short, calls = 0, 0.0, 0
            for seed in range(n):
                value, best, asked = run(name, *random_plane(kind, rng), seed)
                calls += asked
                if value < best - 1e-9:
                    missed += 1
                    short = max(short, 1 - value / best)
            line += f"{100 * missed / n:10.2f}% {100 * short:4.0f}% {calls / n:6.1f}"
        print(line)


if __name__ == "__main__":
    main()
