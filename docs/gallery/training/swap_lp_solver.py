"""
Swap the solver of linear programs
==================================

Any solver of linear programs that cvxpy finds can decode a structure with a polytope, in training
and in prediction: HiGHS simplex, interior points, first-order methods (:doc:`/linear_programs`).
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.multilabel import MultilabelStructure

rng = np.random.default_rng(0)
pairs = rng.normal(size=(6, 6))
X = rng.normal(size=(60, 5))
Y = (X @ rng.normal(size=(5, 6)) + rng.normal(size=(60, 6)) @ pairs > 0).astype(int)
structure = MultilabelStructure(edges="full")
model = StructuredSVM(structure, surrogate="lp", oracle="lp", alpha=0.05, tol=0.02).fit(X, Y)

# %%
# The fitted model predicts with other solvers; exact is the search over all labelings.
exact = model.set_params(oracle=None).predict(X)
names = {"HiGHS": "lp", "HiGHS, integers": "ilp", "Clarabel": "cvxpy:CLARABEL",
         "OSQP": "cvxpy:OSQP,eps_abs=1e-7", "SCIPY": "cvxpy:SCIPY"}  # fmt: skip
seconds, same = {}, {}
for name, oracle in names.items():
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = model.set_params(oracle=oracle).predict(X)
    seconds[name] = time.perf_counter() - begun
    same[name] = (labels == exact).all(axis=1).mean()

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
bars = axes.barh(list(seconds), [1000 * s / len(X) for s in seconds.values()], color="#0072B2")
axes.bar_label(bars, [f"{same[name]:.0%} of the labels exact" for name in seconds], padding=4)
axes.set(xlabel="ms a label set", xlim=(0, 1800 * max(seconds.values()) / len(X)))
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)
