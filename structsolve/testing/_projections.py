"""Checks of projections: marginals, bounds, states, G and its slope, samples, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from ..operators import Projection
from ..structure import projection_calls
from ..structure.ask import ask
from ._case import Case

# Number of samples, and the significance level of their frequencies.
DRAWS, RARE = 2000, 1e-7
# Number of labels towards which slopes are checked, from the maximiser.
DIRECTIONS = 6
# Numerical derivatives: the step of differences, and their tolerance.
STEP, OFF = 1e-4, 1e-2


class Watched:
    """Calls of one projection of a case, with checks of the memory they touch.

    Parameters
    ----------
    case : Case
    projection : Projection
    name : str
        The projection's.
    i : int
        Example.
    """

    def __init__(self, case: Case, projection: Any, name: str, i: int):
        self.case, self.projection, self.name, self.i = case, projection, name, i
        self.state_size = len(case.padding[i])
        if projection.has_state:
            self.state_size = projection_calls.state_size(projection, i)
            if self.state_size < 1:
                case.fail(self.what("state_size"), "is at least 1", i, self.state_size, ">= 1")

    def what(self, method: str) -> str:
        """Return the name of a method in messages."""
        return f"Projection.{method} ({self.name})"

    def call(self, method: str, *arguments: Any, garbage: int = -1) -> Any:
        """Call a method on copies of arguments."""
        function = getattr(projection_calls, method)
        what = self.what(method)
        return self.case.call(what, self.i, function, self.projection, *arguments, garbage=garbage)

    def solution(self, theta: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return state, value and bound."""
        return self.call("project_state", theta)

    def state_of(self, row: int) -> np.ndarray:
        """Return the state of a label: its marginals where these are the state."""
        if not self.projection.has_state:
            return self.case.mu[self.i][row]
        return self.call("state_of", self.case.labels[self.i][row])

    def pool(self, state: np.ndarray) -> np.ndarray:
        """Return the marginals of a state."""
        if not self.projection.has_state:
            return state
        return self.call("pool", state)

    def term(self, state: np.ndarray) -> float:
        """Return G."""
        return self.call("term", state)

    def slope(self, a: np.ndarray, b: np.ndarray, gamma: float) -> float:
        """Return the slope of G."""
        return self.call("slope", a, b, gamma)

    def derivative(self, theta: np.ndarray, direction: np.ndarray, garbage: int = -1) -> np.ndarray:
        """Return the gain of the marginals along a direction."""
        return self.call("derivative", theta, direction, garbage=garbage)

    def sample(self, theta: np.ndarray, uniforms: np.ndarray, garbage: int = -1) -> np.ndarray:
        """Return labels, one per row of uniforms."""
        return self.call("sample", theta, uniforms, garbage=garbage)


def check_projections(case: Case) -> None:
    """Marginals and values of the enumeration (entropy); gradients and convex hull (others)."""
    names = ["entropy", *getattr(case.space, "projections", ("euclidean",))]
    for name in dict.fromkeys(names):
        with case.promise(f"Projection {name!r}", "can be built"):
            projection = _made(case, name)
        if projection is None:
            continue
        what = f"Projection.project ({name})"
        for i in range(case.n):
            watched = Watched(case, projection, name, i)
            states = np.array([watched.state_of(row) for row in range(len(case.mu[i]))])
            _check_states_of_labels(watched, states)
            if projection.has_term:
                _check_term(watched, states)
            for kind, theta in case.thetas(i).items():
                mu, value, bound = case.project(projection, name, i, theta)
                if not (np.isfinite(mu).all() and np.isfinite(value)):
                    case.fail(what, f"is finite ({kind} theta)", i, (mu, value), "finite numbers")
                if projection.gibbs and projection.exact:
                    _check_entropy(case, what, i, kind, theta, (mu, value))
                elif kind != "large" and not projection.gibbs:  # else they are relaxed marginals
                    _check_hull(case, what, i, mu)
                if kind == "random" and projection.exact:
                    _check_gradient(case, what, projection, name, i, theta=theta, mu=mu)
                _check_bound(watched, kind, theta, value, bound)
                _check_solution(watched, kind, theta, states, mu, value)
                if projection.has_samples:
                    _check_samples(watched, kind, theta)
                if projection.has_derivative:
                    _check_derivative(watched, kind, theta, mu)


def check_marginals(case: Case) -> None:
    """Only marginals and log-partition, for many labels."""
    projection = _made(case, "entropy")
    if projection is None or not (projection.gibbs and projection.exact):
        return
    for i in range(case.n):
        for kind, theta in case.thetas(i, ("random", "large")).items():
            mu, value, _ = case.project(projection, "entropy", i, theta)
            _check_entropy(case, "Projection.project (entropy)", i, kind, theta, (mu, value))


def _made(case: Case, name: str) -> Any:
    """Return the projection of a regularizer, or None."""
    bind = ask("structsolve_projection", Projection, case.space, regularizer=name)
    try:
        return None if bind is None else bind(case.part_layout)
    except ValueError:
        return None  # these examples have no such projection, and the error says why


def _check_entropy(
    case: Case, what: str, i: int, kind: str, theta: np.ndarray, answer: tuple[np.ndarray, float]
) -> None:
    mu, value = answer
    scores = case.mu[i] @ theta
    case.near(what, f"returns the log-partition ({kind} theta)", i, value, logsumexp(scores))
    expected = softmax(scores) @ case.mu[i]
    worst = int(np.abs(mu - expected).argmax())
    if abs(mu[worst] - expected[worst]) > 1e-8:
        promise = f"returns the marginals of the Gibbs distribution ({kind} theta)"
        case.fail(
            what,
            promise,
            i,
            f"{float(mu[worst])!r} at position {worst} of theta",
            float(expected[worst]),
        )


def _check_hull(case: Case, what: str, i: int, mu: np.ndarray) -> None:
    from scipy.optimize import nnls  # heavy

    # A convex combination of labels, by a small least-squares fit.
    system = np.vstack([case.mu[i].T, np.ones(len(case.labels[i]))])
    _, distance = nnls(system, np.append(mu, 1.0))
    if distance > 1e-6:
        case.fail(what, "stays in the convex hull of the labels", i, f"distance {distance}", 0)


def _check_gradient(
    case: Case, what: str, projection: Any, name: str, i: int, *, theta: np.ndarray, mu: np.ndarray
) -> None:
    step = 1e-5
    for _ in range(3):
        towards = case.rng.normal(size=len(theta))
        towards[case.padding[i]] = 0
        up, down = (
            case.project(projection, name, i, theta + sign * step * towards)[1] for sign in (1, -1)
        )
        promise = "returns the gradient of its value as marginals"
        case.near(what, promise, i, mu @ towards, (up - down) / (2 * step), 1e-5)


def _check_bound(
    watched: Watched, kind: str, theta: np.ndarray, value: float, bound: float
) -> None:
    """No value exceeds the bound, and the bound of an exact projection is the value."""
    case, i, projection = watched.case, watched.i, watched.projection
    what = watched.what("project")
    slack = 1e-8 * (1 + abs(value))
    if not bound >= value - slack:
        case.fail(what, f"has a bound of at least its value ({kind} theta)", i, bound, value)
    if projection.exact and not bound <= value + slack:
        promise = f"is exact, so its bound is its value ({kind} theta)"
        case.fail(what, promise, i, bound, value)
    least = logsumexp(case.mu[i] @ theta) if projection.gibbs else -np.inf
    if not bound >= least - slack:
        case.fail(what, f"returns an upper bound of the maximum ({kind} theta)", i, bound, least)


def _check_states_of_labels(watched: Watched, states: np.ndarray) -> None:
    """Labels' states pool to their parts, mixtures to mixtures."""
    case, i = watched.case, watched.i
    if not watched.projection.has_state:
        return
    if not np.isfinite(states).all():
        case.fail(watched.what("state_of"), "writes all of a state", i, states, "finite numbers")
    for row, state in enumerate(states):
        promise = "gives mu(y) for the state of the label y = {}"
        case.near(
            watched.what("pool"),
            promise,
            i,
            watched.pool(state),
            case.mu[i][row],
            quoted=(case.labels[i][row],),
        )
    p = case.rng.dirichlet(np.ones(len(states)))
    pooled = watched.pool(p @ states)
    case.near(watched.what("pool"), "is linear in the state", i, pooled, p @ case.mu[i])


def _check_solution(
    watched: Watched, kind: str, theta: np.ndarray, states: np.ndarray, mu: np.ndarray, value: float
) -> None:
    """The maximiser's state: pools to its marginals, attains its value, and is optimal."""
    case, i, projection = watched.case, watched.i, watched.projection
    state, same, bound = watched.solution(theta)
    what = watched.what("project_state")
    case.near(what, f"gives the value of project() ({kind} theta)", i, same, value)
    if not bound >= value - 1e-8 * (1 + abs(value)):
        case.fail(what, f"has a bound of at least its value ({kind} theta)", i, bound, value)
    promise = f"gives a state that pools to the marginals of project() ({kind} theta)"
    case.near(what, promise, i, watched.pool(state), mu, 1e-8)
    if projection.gibbs and projection.exact:
        promise = f"gives the mean of the labels' states ({kind} theta)"
        case.near(what, promise, i, state, softmax(case.mu[i] @ theta) @ states, 1e-8)
    if not projection.has_term:
        return
    attained = watched.term(state) + watched.pool(state) @ theta
    what = watched.what("term")
    case.near(what, f"gives the value at the maximiser ({kind} theta)", i, attained, value, 1e-8)
    mixture = case.rng.dirichlet(np.ones(len(states)))
    least = watched.term(mixture @ states) + mixture @ case.mu[i] @ theta
    if not bound >= least - 1e-8 * (1 + abs(least)):
        what = watched.what("project_state")
        case.fail(what, f"has a bound that no mixture exceeds ({kind} theta)", i, bound, least)
    if not projection.exact:
        return
    for row in case.rng.permutation(len(states))[:DIRECTIONS]:
        rise = watched.slope(state, states[row], 0.0) + theta @ (case.mu[i][row] - mu)
        # If entries of a state underflow to 0, the slope is infinite.
        if rise > 1e-7 * (1 + np.abs(theta).max()) and (state > 0).all() | (rise < np.inf):
            promise = f"rises from the maximiser towards no label ({kind} theta)"
            case.fail(
                watched.what("slope"),
                promise,
                i,
                f"{rise} towards {case.labels[i][row]}",
                "at most 0",
            )


def _check_term(watched: Watched, states: np.ndarray) -> None:
    """G is concave, 0 at labels if it is an entropy, and its slope is its derivative."""
    case, i = watched.case, watched.i
    if watched.projection.gibbs:
        at_labels = [watched.term(state) for state in states[:DIRECTIONS]]
        promise = "is 0 for a single label, like an entropy"
        case.near(watched.what("term"), promise, i, at_labels, np.zeros(len(at_labels)))
    for _ in range(2):
        few = np.ones(len(states))
        a, b = (case.rng.dirichlet(few) @ states for _ in range(2))
        middle = watched.term((a + b) / 2)
        ends = watched.term(a), watched.term(b)
        if not middle >= sum(ends) / 2 - 1e-9 * (1 + abs(middle)):
            case.fail(watched.what("term"), "is concave", i, middle, f"at least {sum(ends) / 2}")
        for gamma in (0.3, 0.8):
            up, down = (watched.term((1 - g) * a + g * b) for g in (gamma + 1e-5, gamma - 1e-5))
            promise = f"is the derivative of term() at gamma = {gamma}"
            slope = watched.slope(a, b, gamma)
            case.near(watched.what("slope"), promise, i, slope, (up - down) / 2e-5, 1e-5)
    rows = case.rng.permutation(len(states))
    for c, d in ((a, b), (a, states[rows[0]]), (states[rows[-1]], states[rows[0]])):
        slopes = [watched.slope(c, d, gamma) for gamma in (0, 1e-6, 0.25, 0.5, 0.75, 1 - 1e-6, 1)]
        falling = all(x >= y - 1e-9 * (1 + abs(y)) for x, y in zip(slopes, slopes[1:]))
        if not falling or not np.isfinite(slopes[1:-1]).all():
            promise = "falls along a segment, finite between its ends"
            case.fail(watched.what("slope"), promise, i, slopes, "numbers that fall")


def _check_derivative(watched: Watched, kind: str, theta: np.ndarray, mu: np.ndarray) -> None:
    """The Jacobian is symmetric, and equals the covariance of parts or finite differences."""
    case, i, what = watched.case, watched.i, watched.what("derivative")
    directions = case.rng.normal(size=(2, len(theta)))
    directions[:, case.padding[i]] = 0
    moved = np.array([watched.derivative(theta, d) for d in directions])
    if moved[:, case.padding[i]].any():
        case.fail(what, "leaves padding zero", i, moved[:, case.padding[i]], 0)
    again = watched.derivative(theta, directions[0], 0)
    if again.tobytes() != moved[0].tobytes():
        promise = f"gives the same result twice, regardless of its scratch memory ({kind} theta)"
        case.fail(what, promise, i, again, moved[0])
    promise = f"gives a symmetric Jacobian ({kind} theta)"
    case.near(what, promise, i, moved[0] @ directions[1], moved[1] @ directions[0], 1e-7)
    if watched.projection.gibbs and watched.projection.exact:
        weights = softmax(case.mu[i] @ theta)
        promise = f"gives the covariance of the parts with the direction ({kind} theta)"
        for d, gain in zip(directions, moved):
            along = case.mu[i] @ d
            expected = (weights * (along - weights @ along)) @ case.mu[i]
            case.near(what, promise, i, gain, expected, 1e-7)
    elif kind == "random":
        promise = f"gives the change of the marginals along a direction ({kind} theta)"
        for d, gain in zip(directions, moved):
            ends = (
                case.project(watched.projection, watched.name, i, theta + step * d)[0]
                for step in (STEP, -STEP)
            )
            right, left = (sign * (end - mu) / STEP for sign, end in zip((1, -1), ends))
            if np.abs(right - left).max() < OFF:  # else there is a kink
                case.near(what, promise, i, gain, (left + right) / 2, OFF)


def _check_samples(watched: Watched, kind: str, theta: np.ndarray) -> None:
    """Samples are labels, reproducible, and as frequent as they are probable."""
    from scipy.stats import chi2  # heavy

    case, i, what = watched.case, watched.i, watched.what("sample")
    n = DRAWS if kind == "random" else 20
    uniforms = case.rng.random((n, case.label_size(i)))
    uniforms[0], uniforms[1] = 0.0, np.nextafter(1.0, 0.0)
    labels = watched.sample(theta, uniforms)
    again = watched.sample(theta, uniforms, 0)
    if labels.tolist() != again.tolist():
        case.fail(what, f"draws the same twice ({kind} theta)", i, again, labels)
    rows = [case.find(i, label) for label in labels]
    if None in rows:
        bad = labels[rows.index(None)]
        case.fail(what, f"draws labels of the example ({kind} theta)", i, bad, "one listed")
    expected = (n - 2) * softmax(case.mu[i] @ theta)
    # The first two are the ends of [0, 1), which may give any label of positive probability.
    drawn = np.array(rows[2:], dtype=np.int64)
    seen = np.bincount(drawn, minlength=len(expected)).astype(float)
    if (seen[expected < 1e-30] > 0).any():
        case.fail(what, f"never draws a label of probability 0 ({kind} theta)", i, seen, expected)
    if kind != "random":
        return
    # Rare labels are counted together.
    rare = expected < 10
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    seen, expected = seen[expected > 0], expected[expected > 0]
    deviation = float(((seen - expected) ** 2 / np.maximum(expected, 1)).sum())
    if len(expected) > 1 and chi2.sf(deviation, len(expected) - 1) < RARE:
        promise = f"draws labels with their probabilities ({n} draws)"
        case.fail(what, promise, i, seen, expected)
