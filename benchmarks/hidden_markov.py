"""Baum and Welch's algorithm: seconds of a step, and likelihoods, against hmmlearn.

Both start from the same random parameters and take the same number of steps on the same random
sequences; the log-likelihoods of all steps agree to 1e-9 of their size, or the script fails.

    python benchmarks/hidden_markov.py
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
from common import header, median_time, table
from environments import enter

from structsolve import HiddenMarkovModel

STEPS = 10


def compare(K: int, V: int, n: int, length: int, rng: np.random.Generator) -> list[Any]:
    from hmmlearn.hmm import CategoricalHMM  # optional

    init = {
        "start": rng.dirichlet(np.ones(K)),
        "transition": rng.dirichlet(np.ones(K), size=K),
        "table": rng.dirichlet(np.ones(V), size=K),
    }
    X = [rng.integers(0, V, length) for _ in range(n)]
    X[0][:V] = np.arange(V)[:length]
    flat, lengths = np.concatenate(X)[:, None], [length] * n

    def ours() -> HiddenMarkovModel:
        model = HiddenMarkovModel(K, smoothing=0, init=init, max_iter=STEPS, tol=0, n_jobs=1)
        return model.fit(X)

    def theirs(kind: str) -> Any:
        model = CategoricalHMM(
            K, n_iter=STEPS, tol=-np.inf, init_params="", params="ste", implementation=kind
        )
        model.startprob_, model.transmat_ = init["start"], init["transition"]
        model.emissionprob_ = init["table"]
        return model.fit(flat, lengths)

    seconds, _, own = median_time(ours)
    rows = []
    for kind in ("log", "scaling"):
        peer, _, other = median_time(lambda kind=kind: theirs(kind))
        history = [record["log_likelihood"] for record in own.history_]
        np.testing.assert_allclose(history, [*other.monitor_.history], rtol=1e-9)
        rows.append(peer)
    name = f"{n} x {length}, {K} states, {V} symbols"
    times = [f"{1e3 * t / STEPS:.2f}" for t in (seconds, *rows)]
    return [name, *times, *(f"{peer / seconds:.1f}" for peer in rows)]


def main() -> None:
    enter("hmmlearn")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # of few rows for the parameters
    header("Hidden Markov models")
    rng = np.random.default_rng(0)
    warnings.simplefilter("ignore")  # more steps would go on
    sizes = [(4, 20, 2000, 20), (16, 50, 200, 100), (64, 200, 100, 100), (4, 4, 2, 20000)]
    rows = [compare(*size, rng) for size in sizes]
    columns = ["sequences", "ms a step, ours", "hmmlearn, logs", "hmmlearn, scaling"]
    print(table([*columns, "logs / ours", "scaling / ours"], rows))


if __name__ == "__main__":
    main()
