"""Two threads against one: wall time of cutting planes, predict and predict_marginals.

Runs on OCR letters (nine folds to train on, all words four times over to predict), takes the best
of --repeat or more runs of each, interleaved, and checks that the results are equal to the last
bit.  The ratio needs an idle machine with two cores: the load average is printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import ocr, ocr_split
from ours import chain_svm, cutting_planes

ASKED = 1.6
SECONDS = 20  # longer than most of the slow spells of a shared machine


def flat(value: Any) -> np.ndarray:
    """Any result (dict of arrays, list of arrays or of tuples) as one array."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return np.concatenate([flat(v) for v in value])
    return np.ravel(np.asarray(value))


def compare(name: str, make: Callable[[int], Callable[[], Any]], repeat: int) -> list[Any]:
    """`make(n_jobs)` gives the call to time; short ones are repeated over SECONDS."""
    calls = {jobs: make(jobs) for jobs in (1, 2)}
    wall = dict.fromkeys(calls, float("inf"))
    cpu, answers = dict(wall), {}
    end = time.monotonic() + SECONDS
    while repeat > 0 or time.monotonic() < end:
        repeat -= 1
        for jobs, call in calls.items():
            with Clock() as clock:
                answer = call()
            answers[jobs] = flat(answer)
            wall[jobs], cpu[jobs] = min(wall[jobs], clock.wall), min(cpu[jobs], clock.cpu)
    same = np.array_equal(answers[1], answers[2])
    gain = wall[1] / wall[2]
    return [
        name,
        wall[1],
        wall[2],
        f"{gain:.2f}x",
        cpu[2] / cpu[1],
        "yes" if same else "NO",
        "yes" if gain >= ASKED else "no",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--passes", type=int, default=30, help="cutting-plane iterations")
    args = parser.parse_args()
    header("n_jobs=2 against n_jobs=1, wall time")
    structsolve = structsolve_or_none()
    if not structsolve:
        return
    train, _ = ocr_split(0, "nine")
    x, y = train.x_list("packed"), train.y_list()
    many = ocr()[0].repeat(4).x_list("packed")
    alpha = 1.0 / (0.02 * train.n_words)
    fitted = chain_svm(structsolve, alpha, 5, ends=True).fit(x, y)

    def fit(solver: Any) -> Callable[[int], Callable[[], Any]]:
        def make(jobs: int) -> Callable[[], Any]:
            model = chain_svm(
                structsolve, alpha, args.passes, ends=True, solver=solver, n_jobs=jobs
            )
            return lambda: model.fit(x, y).coef_

        return make

    def answer(method: str) -> Callable[[int], Callable[[], Any]]:
        def make(jobs: int) -> Callable[[], Any]:
            def call() -> Any:
                fitted.set_params(n_jobs=jobs)
                return getattr(fitted, method)(many)

            return call

        return make

    rows = [
        compare(f"fit, {name}", fit(solver), args.repeat)
        for name, solver in cutting_planes().items()
    ]
    rows += [compare(m, answer(m), args.repeat) for m in ("predict", "predict_marginals")]
    print(
        table(
            [
                "work",
                "wall s, 1 job",
                "wall s, 2 jobs",
                "gain",
                "CPU of 2 / CPU of 1",
                "same to the last bit",
                f"at least {ASKED}x",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
