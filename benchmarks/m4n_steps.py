"""Test losses after the published steps of M3N and M4N, and at the optimum, on letter and words.

The paper's code (github.com/alexnowakvila/maxminloss, with its earlier ``experiments/``) takes
Frank-Wolfe steps of fixed size ``2n / (k + 2n)``, averages the iterates with weights k, and ends
after 101 passes, on words after 21.  This script takes the same steps on the first split of
``m4n_table.py``, and solves the same problem to a certified gap.  The excess is the objective after
the steps, over the certified lower bound of the optimum.  Our answers of the oracle are exact.

    STRUCTSOLVE_DATA=... python benchmarks/m4n_steps.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import header, table
from m4n_table import METHODS, SETS, kind_of, load, loss_of, model_of, parts

PASSES = {"mc-letter": 101, "ocr-letters": 21}
ALPHAS = {"mc-letter": (7e-4, 2e-4, 8e-5, 3e-5), "ocr-letters": (0.0156, 5e-3, 2e-3, 7e-4, 2e-4)}


def fixed_steps(problem: Any, truths: Any, alpha: float, passes: int) -> np.ndarray:
    """Average weights after steps ``2n / (k + 2n)`` over the first examples."""
    from structsolve.potentials import calls as potential_calls
    from structsolve.surrogates import calls as surrogate_calls

    n, rng = len(truths), np.random.RandomState(0)
    w, late = np.zeros(problem.dim), np.zeros(problem.dim)
    duals = [np.zeros(0)] * n
    k = 0
    for _ in range(passes):
        for i in rng.permutation(n):
            theta = potential_calls.score(problem.potentials, i, w)
            cut = surrogate_calls.cut(problem.surrogate, i, theta, truths[i])
            if not duals[i].size:
                duals[i] = np.zeros(theta.size)
            step = 2 * n / (k + 2 * n)
            move = -step * duals[i]
            np.add.at(move, cut.index, step * cut.value)
            duals[i] += move
            index = np.flatnonzero(move).astype(np.int32)
            value = move[index] / (alpha * n)
            potential_calls.add(problem.potentials, i, index, value, 1.0, w)
            # Of the weights 2 k / (k^2 + k) of all iterates, those before this step lack it.
            potential_calls.add(problem.potentials, i, index, value, float(k * (k + 1)), late)
            k += 1
    return w - late / (k * (k + 1))


def compare(name: str, method: str, alpha: float) -> list[object]:
    """One row: losses of both solutions, and the excess of the published steps."""
    from structsolve import get_structure
    from structsolve.potentials import calls as potential_calls
    from structsolve.solvers.passes import surrogate_bounds
    from structsolve.solvers.problem import Problem
    from structsolve.structure import calls

    X, y = load(name)
    train, _, test = parts(X, y, 100)
    model = model_of(name, method, y, 0.02).set_params(alpha=alpha).fit(*train)
    best, n = loss_of(name, test[1], model.predict(test[0])), len(train[0])
    words = kind_of(name) == "ocr"
    # The space adds the constant.  Its examples are those to train, then those to test.
    rows = [x[..., :-1] for x in (*train[0], *test[0])]
    labels = [*train[1], *test[1]]
    structure = get_structure("chain" if words else "multiclass")
    space, examples = structure.make_space(rows if words else np.array(rows), labels)
    problem = Problem(space, examples, "hamming", METHODS[method][0])
    truths = np.split(examples.labels, examples.label_offsets[1:-1])
    w = fixed_steps(problem, truths[:n], alpha, PASSES[name])
    bounds, _ = surrogate_bounds(problem, w)
    primal = 0.5 * alpha * float(w @ w) + float(bounds[:n].mean())
    wrong = [
        calls.argmax(problem.oracle, i, potential_calls.score(problem.potentials, i, w))[0] != truth
        for i, truth in enumerate(truths)
    ][n:]
    last = model.history_[-1]
    return [
        name,
        method,
        f"{alpha:g}",
        f"{100 * np.concatenate(wrong).mean():.1f}",
        f"{100 * (primal / last['dual'] - 1):.0f} %",
        f"{best:.1f}",
        f"{100 * last['gap'] / last['primal']:.1f} %",
        SETS[name][list(METHODS).index(method)],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(PASSES), default=list(PASSES))
    parser.add_argument("--methods", nargs="+", choices=["M3N", "M4N"], default=["M3N", "M4N"])
    parser.add_argument("--alphas", nargs="+", type=float, help="of the sets")
    args = parser.parse_args()
    header("The published steps of M3N and M4N")
    rows = []
    for name in args.sets:
        assert kind_of(name) in ("mc", "ocr")
        for alpha in args.alphas or ALPHAS[name]:
            for method in args.methods:
                rows.append(compare(name, method, alpha))
                print(f"<!-- {rows[-1]} -->", flush=True)
    columns = ["set", "method", "alpha", "published steps: test loss", "excess"]
    columns += ["at the optimum: test loss", "gap", "published, best alpha"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
