"""Overhead of a structure in plain Python beyond its own functions: us per cut of BCFW.

Chains have 8 words and 26 states, with the margin and one step per oracle call.  The oracle is
trivial: ``argmax`` returns a constant label, ``parts`` looks up its result, so the rest is the
library's time.  The plugin's own time is that of the same functions called alone, once each per
cut.  "above" is the time of a cut, including steps and scores, minus the plugin's own time.  The
table also has the built-in chain's cut, with its compiled Viterbi.

    python benchmarks/python_plugin.py
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import ours
from common import Clock, header, structsolve_or_none, table

ASKED = 8.0  # limit in us per cut above the plugin's own time


def make_structure(form: str, answer: str) -> Any:
    """A chain in Python: constant labels, parts that are looked up, dense or as pairs."""
    from structsolve import NodeSpace
    from structsolve.plugins.chain import ChainStructure
    from structsolve.plugins.chain.space import ChainSpace

    class TrivialSpace(NodeSpace):
        stack, state = ChainSpace.stack, ChainSpace.state
        n_edge_features = None

        def argmax(self, examples, i, theta):
            return self.answer

        def parts(self, examples, i, label):
            return self.known[label.tobytes()]

        def learn(self, examples):
            K = len(self.classes_)
            label = np.zeros(8, np.int32)
            self.answer = label.tolist() if answer == "list" else label
            rows = [examples.label(i) for i in range(examples.n)]
            self.known = {y.tobytes(): parts_of(y, K, form) for y in [label, *rows]}

    class TrivialStructure(ChainStructure):
        name = "trivial"

        def make_space(self, X, Y, classes=None, fit_intercept=True):
            native, examples = super().make_space(X, Y, classes, fit_intercept)
            space = TrivialSpace(self, native.layout, native.classes_)
            space.learn(examples)
            return space, examples

    return TrivialStructure()


def parts_of(y: np.ndarray, K: int, form: str) -> dict[str, Any]:
    """``mu(y)`` of a chain."""
    states = np.eye(K)[y]
    mu = {
        "transition": (states[:-1, :, None] * states[1:, None, :]).sum(axis=0),
        "start": states[0],
        "end": states[-1],
        "node": states,
    }
    if form == "dense":
        return mu
    return {name: (np.flatnonzero(a), a.ravel()[np.flatnonzero(a)]) for name, a in mu.items()}


def least_time(call: Any, repeat: int) -> tuple[float, Any]:
    """The least CPU seconds of several calls (the machine may be shared), and the last result."""
    seconds = []
    for _ in range(repeat):
        with Clock() as clock:
            result = call()
        seconds.append(clock.cpu)
    return min(seconds), result


def own_time(space: Any, examples: Any, calls: int) -> float:
    """us of one call of ``argmax`` and one of ``parts``, called alone."""
    theta = np.zeros(space.layout.theta_size(8, 0))
    label = np.zeros(8, np.int32)

    def run() -> None:
        views = space.layout.theta_views(theta, 8, 0)
        argmax, parts = space.argmax, space.parts
        for _ in range(calls):
            argmax(examples, 0, views)
            parts(examples, 0, label)

    return least_time(run, 5)[0] / calls * 1e6


def time_of_cut(structure: Any, X: Any, Y: Any, passes: int) -> tuple[float, Any]:
    """us per oracle call of training, and the model."""
    from structsolve import StructuredSVM

    def run(number: int) -> Any:
        settings = {"alpha": 1e-2, "tol": 0.0, "max_iter": number, "solver": ours.plain_bcfw()}
        return StructuredSVM(structure, **settings).fit(X, Y)

    short, long = (least_time(lambda n=n: run(n), 25) for n in (2, 2 + passes))
    calls = [sum(r["oracle_calls"] for r in t[1].history_) for t in (short, long)]
    return (long[0] - short[0]) / (calls[1] - calls[0]) * 1e6, long[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--passes", type=int, default=20)
    args = parser.parse_args()
    header("A structure in plain Python: us per cut (8 words, 26 states, margin, BCFW)")
    if structsolve_or_none() is None:
        return
    # An oracle that returns a constant label does not maximise, so training warns.
    warnings.filterwarnings("ignore", message=".*does not find the best labels|the model predicts")
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, args.features)) for _ in range(args.examples)]
    Y = [np.append(rng.integers(0, 26, 7), i % 26) for i in range(args.examples)]
    native, _ = time_of_cut("chain", X, Y, args.passes)
    rows = []
    for form, answer in (("dense", "list"), ("dense", "array"), ("pairs", "array")):
        cut, model = time_of_cut(make_structure(form, answer), X, Y, args.passes)
        examples = model.space_.pack(X, Y)
        own = own_time(model.space_, examples, 20_000)
        rows.append([f"{form} parts, label of type {answer}", cut, own, cut - own, native])
    columns = ["plugin", "cut", "plugin's own", f"above (target: {ASKED:.0f})", "built-in chain"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
