"""
Network flow: which way do drivers take?
========================================

Drivers cross a town by the route that seems best to them, which changes with weather and hour.
``"flow"`` learns the value of each street from observed routes; the best route is an optimal flow
(:doc:`/conditional_risk`).
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.flow import FlowStructure

SIZE = 5
town = nx.DiGraph()
for row in range(SIZE):
    for column in range(SIZE):
        if column + 1 < SIZE:
            town.add_edge((row, column), (row, column + 1), capacity=1)
        if row + 1 < SIZE:
            town.add_edge((row, column), (row + 1, column), capacity=1)
town.nodes[0, 0]["demand"] = -1
town.nodes[SIZE - 1, SIZE - 1]["demand"] = 1
streets = list(town.edges)

# %%
# The cost of a street depends on rain and traffic. We observe only routes, drivers know the costs.
rng = np.random.default_rng(0)
base, rain, busy = rng.uniform(1, 2, len(streets)), *rng.uniform(0, 2, (2, len(streets)))


def drive(x):
    """The cheapest route, as zeros and ones over the streets."""
    costs = base + rain * x[0] + busy * x[1] + 0.2 * rng.uniform(size=len(streets))
    for (a, b), cost in zip(streets, costs):
        town.edges[a, b]["cost"] = cost
    way = nx.shortest_path(town, (0, 0), (SIZE - 1, SIZE - 1), weight="cost")
    return np.isin(range(len(streets)), [streets.index(s) for s in zip(way, way[1:])]).astype(int)


X = rng.uniform(size=(300, 2))
Y = np.array([drive(x) for x in X])
model = StructuredSVM(FlowStructure(town), alpha=0.003, tol=0.02).fit(X[:200], Y[:200])
guess = model.predict(X[200:])
print(f"streets that are right: {(guess == Y[200:]).mean():.1%}")
print(f"whole ways: {(guess == Y[200:]).all(axis=1).mean():.0%}")

# %%
# The best route in four kinds of weather and traffic.
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
cases = {"dry, empty": (0, 0), "rain": (1, 0), "busy": (0, 1), "rain and busy": (1, 1)}
for ax, (name, x) in zip(axes, cases.items()):
    way = model.predict([x])[0]
    for (a, b), on in zip(streets, way):
        style = {"color": "#D55E00", "linewidth": 4} if on else {"color": "#bbbbbb", "linewidth": 1}
        ax.plot([a[1], b[1]], [a[0], b[0]], solid_capstyle="round", **style)
    ax.invert_yaxis()
    ax.set_aspect("equal")
    ax.set_title(name, fontsize=10)
    ax.axis("off")
