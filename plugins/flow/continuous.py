"""Flows of any size under the squared and the absolute loss, for conditional risk minimisation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from structsolve.examples.packed import Examples
from structsolve.plugins.flow._least_absolute import least_absolute
from structsolve.plugins.flow.network import Network

# Rounding error, relative to the network's unit.
ROUNDING = 1e-12


class FlowTargets:
    """Training flows, and the flow of least weighted loss for given weights.

    "squared", ``|y - y'|^2``: the weighted mean, projected on the flows (a quadratic program,
    Clarabel). It needs weights of positive sum; with an intercept they sum to 1.

    "absolute", ``sum_a |y_a - y'_a|``: each arc has a piecewise-linear cost with kinks at the
    training flows. Without negative weights it is convex, and descent along residual cycles ends at
    the optimum (a linear program). Otherwise the largest convex costs below give a bound. Descent
    in the costs themselves starts from the flow of that bound and from the mean by the positive
    weights, ends at local minima, and the better one is taken. The paper used a projected
    subgradient method there. Nothing is random.

    Parameters
    ----------
    network : Network
    flows : ndarray of shape (n, m)
    loss : {"squared", "absolute"}
    """

    def __init__(self, network: Network, flows: np.ndarray, loss: str):
        self.network, self.flows, self.loss = network, np.ascontiguousarray(flows), loss
        self.n, self.sizes = len(flows), (1, 0)
        self._kinks: Any = None
        self.excess_: np.ndarray | None = None

    def check_shape(self, examples: Examples) -> None:
        """Accept any examples: each is one row.

        Parameters
        ----------
        examples : Examples
        """

    def decode(self, weights: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the flow of least weighted loss for every row of weights.

        Parameters
        ----------
        weights : ndarray of shape (t, n)
            Weights of the training examples.
        n_jobs : int or None
            Threads over the rows, for "absolute".

        Returns
        -------
        flows : ndarray of shape (t, m)
        losses : ndarray of shape (t,)
            Their weighted losses.

        Raises
        ------
        ValueError
            For "squared", if the weights of a row do not have a positive sum.
        """
        squared = self.loss == "squared"
        flows = self._squared(weights) if squared else self._absolute(weights, n_jobs)
        return flows, self.weighted(weights, flows)

    def _distances(self, flows: np.ndarray, others: np.ndarray) -> np.ndarray:
        apart = flows - others
        return (apart**2 if self.loss == "squared" else np.abs(apart)).sum(axis=1)

    def weighted(self, weights: np.ndarray, flows: np.ndarray) -> np.ndarray:
        """Return the weighted loss of one flow per row of weights.

        Parameters
        ----------
        weights : ndarray of shape (t, n)
        flows : ndarray of shape (t, m)

        Returns
        -------
        ndarray of shape (t,)
        """
        losses = [w @ self._distances(self.flows, y) for w, y in zip(weights, flows)]
        return np.array(losses, dtype=np.float64)

    def risks(self, weights: np.ndarray, y: Any) -> np.ndarray:
        """Return the weighted losses of flows as users give them.

        Parameters
        ----------
        weights : ndarray of shape (t, n)
        y : array of shape (t, m)

        Returns
        -------
        ndarray of shape (t,)
        """
        return self.weighted(weights, self.network.check_flows(y, len(weights)))

    def losses_of(self, predicted: np.ndarray, y: Any) -> np.ndarray:
        """Return the losses of predictions against true flows.

        Parameters
        ----------
        predicted : ndarray of shape (t, m)
        y : array of shape (t, m)
            As users give it.

        Returns
        -------
        ndarray of shape (t,)
        """
        return self._distances(predicted, self.network.check_flows(y, len(predicted)))

    def losses(self, predicted: np.ndarray) -> np.ndarray:
        """Return the losses of one prediction per training example.

        Parameters
        ----------
        predicted : ndarray of shape (n, m)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.losses_of(predicted, self.flows)

    def unpack(self, predicted: np.ndarray, examples: Examples) -> np.ndarray:
        """Return predictions as they are.

        Parameters
        ----------
        predicted : ndarray of shape (t, m)
        examples : Examples

        Returns
        -------
        ndarray of shape (t, m)
        """
        return predicted

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the training flows, for a model file.

        Returns
        -------
        (dict, dict of str to ndarray)
        """
        return {}, {"flows": self.flows}

    # -- squared --------------------------------------------------------------------------------

    def _squared(self, weights: np.ndarray) -> np.ndarray:
        total = weights.sum(axis=1)
        wrong = np.flatnonzero(~(total > 0))
        if wrong.size:
            raise ValueError(
                f"example {wrong[0]}: the weights sum to {total[wrong[0]]:g}, expected a positive "
                "sum, as the weighted squared loss is not convex otherwise; use "
                "fit_intercept=True, which makes the sum 1"
            )
        return project(self.network, (weights @ self.flows) / total[:, None])

    # -- absolute -------------------------------------------------------------------------------

    def _absolute(self, weights: np.ndarray, n_jobs: int | None) -> np.ndarray:
        if self._kinks is None:
            self._kinks = self._find_kinks()
        positive = np.maximum(weights, 0)
        total = positive.sum(axis=1, keepdims=True)
        # Without a positive weight, the mean of the training flows.
        positive = np.where(total > 0, positive / np.where(total > 0, total, 1), 1 / self.n)
        starts = np.ascontiguousarray(positive @ self.flows)
        flows, self.excess_, cycles = least_absolute(
            self.network.ends,
            self.network.n,
            *self._kinks,
            weights=np.ascontiguousarray(weights),
            starts=starts,
            n_jobs=n_jobs,
        )
        if (cycles < 0).any():
            warnings.warn(
                f"{int((cycles < 0).sum())} flows of least absolute loss have not converged",
                ConvergenceWarning,
                stacklevel=2,
            )
        return np.clip(flows, 0, self.network.upper)

    def _find_kinks(self) -> tuple[np.ndarray, ...]:
        first, kinks, place = [0], [], []
        for values, upper in zip(self.flows.T, self.network.upper):
            own, where = np.unique(np.concatenate([[0.0, upper], values]), return_inverse=True)
            # Flows that differ only by rounding are one kink; the last kink is the upper bound.
            apart = np.append(True, np.diff(own) > 4 * np.finfo(float).eps * self.network.unit)
            own, where = own[apart], (np.cumsum(apart) - 1)[where]
            own[-1] = max(own[-1], upper)
            place.append(where[2:] + first[-1])
            kinks.append(own)
            first.append(first[-1] + len(own))
        item = np.tile(np.arange(self.n, dtype=np.longlong), self.network.m)
        return (
            np.array(first, dtype=np.longlong),
            np.concatenate(kinks),
            item,
            np.concatenate(place).astype(np.longlong),
        )


def project(network: Network, points: np.ndarray) -> np.ndarray:
    """Return the flows nearest to points, row by row.

    Parameters
    ----------
    network : Network
    points : ndarray of shape (t, m)

    Returns
    -------
    ndarray of shape (t, m)

    Raises
    ------
    RuntimeError
        If the solver fails.
    """
    import clarabel  # heavy
    from scipy.sparse import csc_matrix, eye, vstack  # heavy

    m, flows = network.m, np.clip(points, 0, network.upper)
    # Points that already are flows stay.
    N, unit = network.incidence(), network.unit
    inside = (np.abs(flows - points) <= ROUNDING * unit).all(axis=1)
    inside &= (np.abs(points @ N.T - network.demand) <= 1e3 * ROUNDING * unit).all(axis=1)
    A = csc_matrix(vstack([N, -eye(m), eye(m)]))
    # In units of the total supply: the solver's tolerances are absolute.
    b = np.concatenate([network.demand, np.zeros(m), network.upper]) / unit
    cones = [clarabel.ZeroConeT(network.n), clarabel.NonnegativeConeT(2 * m)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    solver: Any = None
    for t in np.flatnonzero(~inside):
        q = -points[t] / unit
        if solver is None:
            solver = clarabel.DefaultSolver(csc_matrix(eye(m)), q, A, b, cones, settings)
        else:
            solver.update(q=q)
        answer = solver.solve()
        if "Solved" not in str(answer.status):
            raise RuntimeError(f"example {t}: the projection on the flows ended: {answer.status}")
        flows[t] = np.clip(unit * np.asarray(answer.x), 0, network.upper)
    return flows
