"""
Certificates: watch the gap close
=================================

The plot compares the default solver with the algorithm as first published, over passes that call
the oracle. The optimum lies between the objective and its lower bound, and training stops when they
are close enough (:doc:`/solvers`).
"""

import warnings

from sklearn.exceptions import ConvergenceWarning

from structsolve import StructuredSVM, make_strips
from structsolve.evaluation.plotting import plot_convergence
from structsolve.solvers import BCFW

warnings.simplefilter("ignore", ConvergenceWarning)
train, _ = make_strips(n_train=500, n_test=1)
solvers = {
    "bcfw": BCFW(certify_every=1),
    "as published": BCFW(
        steps="frank-wolfe", max_steps=1, cached_passes=0, sampling="uniform", certify_every=1
    ),
}
histories = {
    name: StructuredSVM("chain", solver=solver, alpha=0.003, max_iter=40, tol=0.005)
    .fit(train.pixels, train.labels)
    .history_
    for name, solver in solvers.items()
}
figure = plot_convergence(histories, x="passes", tol=0.005)
