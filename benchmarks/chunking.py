"""CoNLL-2000 chunking, every side tuned on the same held-out sentences: span F1 and training time.

All learners get the features of `structsolve.conll_features`.  Every tenth training sentence is
held out; each learner is trained on the others with every setting of its grid, and trained again
on all sentences with the setting of best held-out span F1 (as in conlleval).  Among equal scores
the quickest is taken.  Intervals are of 95 % by 2,000 bootstrap samples of the test sentences;
the last column is the share of these samples in which the learner is ahead of our default solver.
Times are of the final training alone: CRFsuite's and our conversions are printed; vowpalwabbit's
search reads its text while it trains, so its time includes reading.  The surrogates of the thesis'
Table 5.4 are among the learners.

    STRUCTSOLVE_DATA=... python benchmarks/chunking.py --learners "ours, bcfw" "crfsuite pa"
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import attribute_matrices, chunking_attributes, conll2000
from environments import ready
from ours import chain_svm, over_hull
from peers import Crfsuite

Labels = list[list[str]]


@dataclass
class Part:
    """Sentences as attributes, and their chunk tags."""

    items: list[list[list[str]]]
    tags: Labels

    def take(self, rows: Any) -> Part:
        return Part([self.items[i] for i in rows], [self.tags[i] for i in rows])


# -- learners: from training sentences to a function from a setting to seconds and new tags -------

Fit = Callable[[dict[str, Any]], tuple[float, Labels]]


def ours(solver: str, surrogate: str = "margin") -> Callable[[Part, Part], Fit]:
    def begin(train: Part, new: Part) -> Fit:
        import structsolve

        with Clock() as clock:
            x, x_new, names = attribute_matrices(train.items, new.items)
        print(f"<!-- {len(names)} columns, {clock} -->", flush=True)

        def fit(setting: dict[str, Any]) -> tuple[float, Labels]:
            model = chain_svm(
                structsolve,
                1 / (setting["C"] * len(x)),
                setting["passes"],
                ends=True,
                solver=solver,
                surrogate=over_hull(surrogate),
            )
            with Clock() as clock:
                model.fit(x, train.tags)
            return clock.cpu, [list(map(str, tags)) for tags in model.predict(x_new)]

        return fit

    return begin


def crfsuite(algorithm: str) -> Callable[[Part, Part], Fit]:
    def begin(train: Part, new: Part) -> Fit:
        peer = Crfsuite(train.items, train.tags)
        print(f"<!-- {peer.conversion} -->", flush=True)
        prepared = peer.prepare(new.items)

        def fit(setting: dict[str, Any]) -> tuple[float, Labels]:
            clock = peer.train(algorithm, **setting)
            return clock.cpu, peer.predict(prepared)

        return fit

    return begin


#: Runs in an environment of its own: trains, tags, prints seconds.
SEARCH = """
import json, sys, time
from vowpalwabbit import Workspace
for arguments in json.loads(sys.argv[1]):
    start = time.process_time()
    Workspace(arguments).finish()
    print(time.process_time() - start)
"""


def vowpal(train: Part, new: Part) -> Fit:
    folder = Path(tempfile.mkdtemp(prefix="structsolve-bench-"))
    python = ready("vowpalwabbit")
    names = sorted({tag for part in (train, new) for tags in part.tags for tag in tags})
    number = {tag: k + 1 for k, tag in enumerate(names)}
    escape = str.maketrans({":": "_c_", "|": "_p_", " ": "_"})

    def write(part: Part, path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            for rows, tags in zip(part.items, part.tags, strict=True):
                for row, tag in zip(rows, tags, strict=True):
                    words = " ".join(a.translate(escape) for a in row if a != "bias")
                    file.write(f"{number[tag]} |w {words}\n")
                file.write("\n")

    write(train, folder / "train")
    write(new, folder / "new")

    def fit(setting: dict[str, Any]) -> tuple[float, Labels]:
        learn = (
            f"--search {len(names)} --search_task sequence --search_rollout none "
            f"--search_history_length 1 --holdout_off -b 24 --quiet -c -k --passes "
            f"{setting['passes']} --cache_file {folder}/cache -d {folder}/train -f {folder}/model"
        )
        tag = f"-i {folder}/model -t --quiet -d {folder}/new -p {folder}/tags"
        call = [str(python), "-c", SEARCH, json.dumps([learn, tag])]
        told = subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()
        lines = (folder / "tags").read_text().splitlines()
        return float(told[0]), [[names[int(k) - 1] for k in line.split()] for line in lines if line]

    return fit


def grid(**values: Any) -> list[dict[str, Any]]:
    return [dict(zip(values, each)) for each in itertools.product(*values.values())]


LEARNERS: dict[str, tuple[Callable[[Part, Part], Fit], list[dict[str, Any]]]] = {
    "ours, bcfw": (ours("bcfw"), grid(C=(0.01, 0.03, 0.1, 0.3), passes=(10, 20))),
    "ours, sgd": (ours("sgd"), grid(C=(0.1, 0.3, 1.0), passes=(5, 10, 30))),
    "ours, sgd, probloss": (ours("sgd", "probloss"), grid(C=(0.03, 0.1, 0.3), passes=(10, 30))),
    "ours, sgd, beta": (ours("sgd", "beta:0.5"), grid(C=(0.03, 0.1, 0.3), passes=(10, 30))),
    "ours, sgd, slack": (ours("sgd", "slack"), grid(C=(0.03, 0.1, 0.3), passes=(10, 30))),
    "ours, bcfw, micro-f1": (
        ours("bcfw", "micro-f1:O"),
        grid(C=(3.0, 10.0, 30.0, 100.0), passes=(10, 20)),
    ),
    "crfsuite pa": (crfsuite("pa"), grid(max_iterations=(5, 10, 20, 50))),
    "crfsuite ap": (crfsuite("ap"), grid(max_iterations=(5, 10, 20, 50))),
    "crfsuite arow": (crfsuite("arow"), grid(gamma=(1.0, 10.0), max_iterations=(5, 10, 20))),
    "crfsuite lbfgs": (crfsuite("lbfgs"), grid(c2=(0.3, 1.0, 3.0), max_iterations=(100,))),
    "crfsuite l2sgd": (crfsuite("l2sgd"), grid(c2=(0.3, 1.0, 3.0), max_iterations=(50,))),
    "vowpalwabbit search": (vowpal, grid(passes=(1, 2, 3, 5, 8))),
}


# -- scores ---------------------------------------------------------------------------------------


def counts(truth: Labels, predicted: Labels) -> np.ndarray:
    """Right, predicted and true spans of every sentence."""
    from structsolve.plugins.chain.spans import spans

    rows = []
    for true, told in zip(truth, predicted, strict=True):
        a, b = set(spans(true)), set(spans(told))
        rows.append((len(a & b), len(b), len(a)))
    return np.array(rows)


def f1(rows: np.ndarray) -> Any:
    """Span F1 in per cent from counts, summed over the axis before the last."""
    right, told, true = np.moveaxis(rows.sum(axis=-2), -1, 0)
    return 200 * right / np.maximum(told + true, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--sentences", type=int, help="train on the first so many only")
    args = parser.parse_args()
    header("CoNLL-2000 chunking, tuned on held-out sentences")
    if structsolve_or_none() is None:
        return
    whole, test = (
        Part([chunking_attributes(s) for s in sentences], tags)
        for sentences, tags in (conll2000("train"), conll2000("test"))
    )
    whole = whole.take(range(args.sentences or len(whole.items)))
    rows = np.arange(len(whole.items))
    fewer, held = whole.take(rows[rows % 10 > 0]), whole.take(rows[rows % 10 == 0])
    samples = np.random.default_rng(0).integers(len(test.tags), size=(2000, len(test.tags)))
    results, base = [], None
    for name in args.learners:
        begin, settings = LEARNERS[name]
        fit, tried = begin(fewer, held), []
        for setting in settings:
            seconds, predicted = fit(setting)
            tried.append((-round(float(f1(counts(held.tags, predicted))), 2), seconds, setting))
            print(f"<!-- {name} {setting}: {tried[-1][:2]} -->", flush=True)
        least, _, setting = min(tried, key=lambda one: one[:2])
        seconds, predicted = begin(whole, test)(setting)
        each = counts(test.tags, predicted)
        drawn = f1(each[samples])
        base = drawn if base is None else base
        low, high = np.percentile(drawn, [2.5, 97.5])
        chosen = ", ".join(f"{key} {value:g}" for key, value in setting.items())
        results.append(
            [name, chosen, f"{-least:.2f}", f"{f1(each):.2f}", f"{low:.2f} to {high:.2f}"]
            + [f"{seconds:.1f}", f"{np.mean(drawn > base):.2f}"]
        )
        print(f"<!-- {results[-1]} -->", flush=True)
    print(f"\n{len(whole.tags)} sentences, {len(test.tags)} to test\n")
    columns = ["learner", "chosen", "F1, held out", "F1, test", "95 %", "train CPU s"]
    print(table([*columns, "ahead of the first"], results))


if __name__ == "__main__":
    main()
