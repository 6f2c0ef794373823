"""
Conditional risk minimisation
=============================

This method needs no surrogate: it estimates the expected cost of each label at x and predicts the
cheapest. One factorisation serves every loss (:doc:`/conditional_risk`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import ConditionalRiskMinimizer, CostMatrix

# %%
# The spread of grades grows with x. The best prediction depends on the costs of errors.
rng = np.random.default_rng(0)
x = rng.uniform(0, 1, 600)
y = np.clip(np.round(4 * x + (0.3 + 2.5 * x) * rng.normal(size=600)), 0, 6).astype(int)
grade = np.arange(7)
far = grade[:, None] - grade[None]  # the answer less the truth, or the other way round
LOSSES = {
    "each error costs 1": CostMatrix((far != 0).astype(float)),
    "the distance": CostMatrix(np.abs(far).astype(float)),
    "its square": CostMatrix((far**2).astype(float)),
}
line = np.linspace(0, 1, 200)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharex=True)
left.scatter(x, y + 0.15 * rng.normal(size=600), s=4, color="#999999")
for k, ((name, loss), color) in enumerate(zip(LOSSES.items(), ["#D55E00", "#0072B2", "#009E73"])):
    model = ConditionalRiskMinimizer(
        "multiclass", loss=loss, kernel_params={"gamma": 10.0}, alphas=[1e-4, 1e-3, 1e-2]
    )
    guess, risk = model.fit(x[:, None], y).predict_with_risk(line)
    left.plot(line, guess + 0.05 * (k - 1), color=color, label=name, linewidth=1.8)
    right.plot(line, risk, color=color, label=name, linewidth=1.8)
left.set(xlabel="x", ylabel="grade", title="the answer of least risk")
right.set(xlabel="x", ylabel="expected cost", title="and its risk")
right.legend(frameon=False, title="an error costs")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
