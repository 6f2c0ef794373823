"""Flows in a network whose path choice depends on x: conditional risk minimisation and baselines.

The script follows the simulation of Goh and Jaillet (2017, section 6.2), in a different network:
one source, one sink, one unit of flow, 12 arcs.  x is uniform in a cube of 20 dimensions.  The flow
is a mixture of the paths, with random weights that depend on x (a softmax of a linear function of x
plus noise, sharp, so that medians and means differ).  Each method is trained and tuned on n and n/4
rows (with the loss that measures it) and measured on 1000 others.  k nearest neighbours minimise
the mean loss of the neighbours; kernel ridge is projected onto the flows.  ECRM also chooses
whether to have an intercept, which scikit-learn's kernel ridge lacks (without one, its weights
under the squared loss are proportional to ridge's).  "Bayes" minimises the mean loss of draws at
the true x.

    python benchmarks/flows.py                      # the table
    python benchmarks/flows.py --curve              # risk at a fixed x against n, and a picture
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import networkx as nx
import numpy as np
from common import Clock, header, picture, structsolve_or_none, table

DIMENSION, SHARP, NOISE = 20, 6.0, 3.0
ALPHAS = [float(a) for a in 10.0 ** np.arange(-6, 0.1, 0.5)]
GAMMAS = (0.01, 0.03, 0.1, 0.3)
NEIGHBOURS = (3, 5, 10, 20, 40, 80, 160)
ARCS = [
    ("s", "a"), ("s", "b"), ("s", "c"), ("a", "b"), ("a", "d"), ("b", "d"), ("b", "e"),
    ("c", "b"), ("c", "e"), ("d", "t"), ("e", "d"), ("e", "t"),
]  # fmt: skip
PUBLISHED = {"absolute": (1.627, 1.713, 1.867), "squared": (0.648, 0.686, 0.650)}


def network() -> nx.DiGraph:
    graph = nx.DiGraph(ARCS)
    graph.add_node("s", demand=-1.0)
    graph.add_node("t", demand=1.0)
    return graph


class World:
    """Paths, and their weights as a function of x."""

    def __init__(self, seed: int = 0):
        self.graph = network()
        arcs = list(self.graph.edges)
        paths = list(nx.all_simple_paths(self.graph, "s", "t"))
        self.paths = np.zeros((len(paths), len(arcs)))
        for p, path in enumerate(paths):
            for arc in zip(path, path[1:]):
                self.paths[p, arcs.index(arc)] = 1
        rng = np.random.default_rng(seed)
        self.W = rng.normal(size=(DIMENSION, len(paths))) * SHARP / np.sqrt(DIMENSION / 12)

    def draw(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        scores = (X - 0.5) @ self.W
        scores = scores + NOISE * rng.gumbel(size=scores.shape)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)) @ self.paths

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = rng.uniform(size=(n, DIMENSION))
        return X, self.draw(X, rng)


def losses_of(loss: str, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((predicted - y) ** 2 if loss == "squared" else np.abs(predicted - y)).sum(axis=-1)


def ecrm(world: World, loss: str, X: Any, Y: Any, X_val: Any, Y_val: Any) -> Any:
    from structsolve import ConditionalRiskMinimizer
    from structsolve.plugins.flow import FlowStructure

    best: Any = (np.inf, None)
    for gamma, intercept in itertools.product(GAMMAS, (False, True)):
        model = ConditionalRiskMinimizer(
            FlowStructure(world.graph),
            loss=loss,
            kernel_params={"gamma": gamma},
            fit_intercept=intercept,
        )
        for one in model.path(X, Y, ALPHAS):
            best = min(best, (-one.score(X_val, Y_val), one), key=lambda pair: pair[0])
    return best[1].predict


def neighbours(world: World, loss: str, X: Any, Y: Any, X_val: Any, Y_val: Any) -> Any:
    from structsolve.plugins.flow.continuous import FlowTargets
    from structsolve.plugins.flow.network import Network

    targets = FlowTargets(Network.of_graph(world.graph), Y, loss)

    def predict(x: np.ndarray, k: int) -> np.ndarray:
        apart = (x**2).sum(axis=1)[:, None] - 2 * x @ X.T + (X**2).sum(axis=1)
        near = np.argpartition(apart, k - 1, axis=1)[:, :k]
        weights = np.zeros(apart.shape)
        np.put_along_axis(weights, near, 1.0 / k, axis=1)
        return targets.decode(weights, 1)[0]

    sizes = [k for k in NEIGHBOURS if k <= len(X)]
    k = min(sizes, key=lambda k: losses_of(loss, predict(X_val, k), Y_val).mean())
    return lambda x: predict(x, k)


def ridge(world: World, loss: str, X: Any, Y: Any, X_val: Any, Y_val: Any) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    from structsolve.plugins.flow.continuous import project
    from structsolve.plugins.flow.network import Network

    flows, best = Network.of_graph(world.graph), (np.inf, lambda x: x)
    for gamma in GAMMAS:
        for alpha in ALPHAS:
            model = KernelRidge(alpha=len(X) * alpha, kernel="rbf", gamma=gamma).fit(X, Y)

            def predict(x: np.ndarray, model: Any = model) -> np.ndarray:
                return project(flows, model.predict(x))

            held_out = losses_of(loss, predict(X_val), Y_val).mean()
            best = min(best, (held_out, predict), key=lambda pair: pair[0])
    return best[1]


def bayes(world: World, loss: str, x: np.ndarray, draws: int = 1000) -> np.ndarray:
    """Flows of least mean loss of draws at each x."""
    from structsolve.plugins.flow.continuous import FlowTargets
    from structsolve.plugins.flow.network import Network

    rng, flows = np.random.default_rng(9), Network.of_graph(world.graph)
    best = []
    for row in x:
        Y = world.draw(np.tile(row, (draws, 1)), rng)
        best.append(FlowTargets(flows, Y, loss).decode(np.full((1, draws), 1 / draws), 1)[0][0])
    return np.array(best)


METHODS = {"ECRM": ecrm, "kNN": neighbours, "ridge, projected": ridge}


def compare(n: int, trials: int) -> None:
    rows = []
    for loss in ("absolute", "squared"):
        values: dict[str, list[float]] = {name: [] for name in (*METHODS, "Bayes")}
        for trial in range(trials):
            world, rng = World(trial), np.random.default_rng(1000 + trial)
            train, val, test = (world.sample(k, rng) for k in (n, max(n // 4, 20), 1000))
            for name, method in METHODS.items():
                predict = method(world, loss, *train, *val)
                values[name].append(float(losses_of(loss, predict(test[0]), test[1]).mean()))
            some = slice(0, 200)
            best = bayes(world, loss, test[0][some])
            values["Bayes"].append(float(losses_of(loss, best, test[1][some]).mean()))
            print(f"  {loss}, trial {trial}:", {k: round(v[-1], 4) for k, v in values.items()},
                  flush=True)  # fmt: skip
        for (name, losses), published in zip(values.items(), (*PUBLISHED[loss], None)):
            lead = np.array(losses) - values["ECRM"]
            error = lead.std(ddof=1) / np.sqrt(trials) if trials > 1 else 0.0
            rows.append([loss, name, f"{np.mean(losses):.4f}", f"{lead.mean():+.4f} ({error:.4f})",
                         published])  # fmt: skip
    print(f"\n{trials} trials, {n} training rows\n")
    print(table(["loss", "method", "mean loss", "less ECRM (s.e.)", "paper"], rows))


def curve(sizes: list[int], trials: int) -> None:
    """Conditional risk at one x under the absolute loss, against the number of training rows."""
    world, loss = World(0), "absolute"
    x = np.full((1, DIMENSION), 0.5) + 0.2 * np.sign(np.arange(DIMENSION) % 3 - 1)
    draws = world.draw(np.tile(x, (20_000, 1)), np.random.default_rng(3))
    least = float(losses_of(loss, bayes(world, loss, x, 5000), draws).mean())
    risks: dict[str, list[float]] = {name: [] for name in METHODS}
    for n in sizes:
        losses: dict[str, list[float]] = {name: [] for name in METHODS}
        for trial in range(trials):
            rng = np.random.default_rng(trial)
            train, val = world.sample(n, rng), world.sample(max(n // 4, 20), rng)
            for name, method in METHODS.items():
                predicted = method(world, loss, *train, *val)(x)
                losses[name].append(float(losses_of(loss, predicted, draws).mean()))
        for name in METHODS:
            risks[name].append(float(np.mean(losses[name])))
        print(f"  {n} rows:", {k: round(v[-1], 4) for k, v in risks.items()}, flush=True)
    rows = [[n, *(f"{risks[name][j]:.4f}" for name in METHODS), f"{least:.4f}"]
            for j, n in enumerate(sizes)]  # fmt: skip
    print(f"\nRisk at a fixed x, absolute loss, means of {trials} trials\n")
    print(table(["training rows", *METHODS, "Bayes"], rows))
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("(no picture: matplotlib is not installed)")
        return
    with picture("flows", "Risk at a fixed x") as axes:
        for name in METHODS:
            axes.plot(sizes, risks[name], marker="o", label=name)
        axes.axhline(least, color="black", linestyle="--", label="Bayes")
        axes.set_xscale("log")
        axes.set_xlabel("training rows")
        axes.set_ylabel("absolute loss")
        axes.legend()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="*", default=[30, 100, 300, 1000, 3000])
    given = parser.parse_args()
    if structsolve_or_none() is None:
        return
    header("Flows")
    with Clock() as clock:
        if given.curve:
            curve(given.sizes, given.trials)
        else:
            compare(given.rows, given.trials)
    print(clock)


if __name__ == "__main__":
    main()
