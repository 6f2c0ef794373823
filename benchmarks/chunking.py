"""CoNLL-2000 chunking, settings chosen on held-out sentences: span F1, training time, surrogates.

All learners get the attributes of `conll_features`.  Every tenth training sentence is
held out; each learner is trained on the others with every setting of its grid, and again on all
sentences with its chosen setting: the quickest of those within .1 of its best span F1 (as in
conlleval) on the held-out sentences.  Intervals are of 95 % by 2,000 bootstrap samples of the test
sentences; a column has the share of these samples in which the learner is ahead of the first.
Training times are without the conversion of attributes, which the next column adds; vowpalwabbit's
search reads its text while it trains, so that its conversion is the writing of the text alone.
The table of the quickest has, of ours, of all peers and of the trainers of CRFs, the quickest
learner whose interval reaches the best F1 of all, or of ours, trained in turn once more.

The surrogates of the thesis' Table 5.4 get alpha by five folds of the training sentences, from the
mean F1 of the folds.  Differences to the margin with the same solver are paired by fold, each fold
with the setting that is best on the other four, then on the test sentences.

    STRUCTSOLVE_DATA=... python benchmarks/chunking.py --learners "ours, bcfw" "crfsuite pa"
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Chosen, Clock, header, in_processes, of_grid, quickest, table
from datasets import chunked_sentences
from environments import ready
from ours import chain_svm, over_hull
from peers import Crfsuite

import structsolve
from structsolve import SequenceVectorizer
from structsolve.plugins.chain.spans import spans
from structsolve.solvers import AROW, PassiveAggressive, Perceptron

Labels = list[list[str]]
Setting = dict[str, Any]
FOLDS = 5


class Split:
    """Attributes and chunk tags to train on, and those of other sentences; converted once."""

    def __init__(self, items: list[Any], tags: Labels, new: list[Any], new_tags: Labels) -> None:
        self.items, self.tags, self.new, self.new_tags = items, tags, new, new_tags

    @classmethod
    def hold_out(cls, items: list[Any], tags: Labels, held: np.ndarray) -> Split:
        parts = [
            [values[i] for i in np.flatnonzero(rows)]
            for rows in (~held, held)
            for values in (items, tags)
        ]
        return cls(*parts)

    @cached_property
    def matrices(self) -> tuple[Any, Any, float]:
        """Ours, and the seconds for those to train on."""
        vectorizer = SequenceVectorizer()
        with Clock() as clock:
            x = vectorizer.fit_transform(self.items)
        return x, vectorizer.transform(self.new), clock.cpu

    @cached_property
    def crfsuite(self) -> tuple[Crfsuite, Any]:
        peer = Crfsuite(self.items, self.tags)
        return peer, peer.prepare(self.new)


#: From a setting to seconds of training and the tags of the new sentences.
Fit = Callable[[Setting], tuple[float, Labels]]
#: Makes it from a split; also the seconds of converting its sentences.
Begin = Callable[[Split], tuple[Fit, float]]


def ours(solver: Any, surrogate: str = "margin") -> Begin:
    """A solver by name, with C = 1 / (alpha n); or a class whose arguments are in the settings."""

    def begin(split: Split) -> tuple[Fit, float]:
        x, x_new, conversion = split.matrices

        def fit(setting: Setting) -> tuple[float, Labels]:
            arguments = {key: value for key, value in setting.items() if key != "passes"}
            alpha = 1 / (arguments["C"] * len(x)) if isinstance(solver, str) else 1e-4
            model = chain_svm(
                structsolve,
                alpha,
                setting["passes"],
                ends=True,
                solver=solver if isinstance(solver, str) else solver(**arguments),
                surrogate=over_hull(surrogate),
            )
            with Clock() as clock:
                model.fit(x, split.tags)
            return clock.cpu, [list(map(str, tags)) for tags in model.predict(x_new)]

        return fit, conversion

    return begin


def crfsuite(algorithm: str) -> Begin:
    def begin(split: Split) -> tuple[Fit, float]:
        peer, prepared = split.crfsuite

        def fit(setting: Setting) -> tuple[float, Labels]:
            clock = peer.train(algorithm, **setting)
            return clock.cpu, peer.predict(prepared)

        return fit, peer.conversion.cpu

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


def vowpal(split: Split) -> tuple[Fit, float]:
    folder = Path(tempfile.mkdtemp(prefix="structsolve-bench-"))
    python = ready("vowpalwabbit")
    names = sorted({tag for tags in split.tags + split.new_tags for tag in tags})
    number = {tag: k + 1 for k, tag in enumerate(names)}
    escape = str.maketrans({":": "_c_", "|": "_p_", " ": "_"})

    def write(items: list[Any], labels: Labels, path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            for rows, tags in zip(items, labels, strict=True):
                for row, tag in zip(rows, tags, strict=True):
                    words = " ".join(a.translate(escape) for a in row if a != "bias")
                    file.write(f"{number[tag]} |w {words}\n")
                file.write("\n")

    with Clock() as clock:
        write(split.items, split.tags, folder / "train")
    write(split.new, split.new_tags, folder / "new")

    def fit(setting: Setting) -> tuple[float, Labels]:
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

    return fit, clock.cpu


def grid(**values: Any) -> list[Setting]:
    return [dict(zip(values, each)) for each in itertools.product(*values.values())]


LEARNERS: dict[str, tuple[Begin, list[Setting]]] = {
    "ours, bcfw": (ours("bcfw"), grid(C=(0.03, 0.1, 0.3), passes=(5, 10, 20))),
    "ours, sgd": (ours("sgd"), grid(C=(0.03, 0.1, 0.3, 1.0), passes=(3, 5, 10, 20))),
    "ours, passive-aggressive": (
        ours(PassiveAggressive),
        grid(passes=(5, 10, 20), C=(0.01, 0.1, 1.0)),
    ),
    "ours, perceptron": (ours(Perceptron), grid(passes=(3, 5, 10, 20))),
    "ours, arow": (ours(AROW), grid(passes=(3, 5, 10), r=(10.0, 100.0, 1000.0))),
    "crfsuite pa": (
        crfsuite("pa"),
        grid(c=(1.0,), max_iterations=(5, 10, 20, 50)) + grid(c=(0.01, 0.1), max_iterations=(10,)),
    ),
    "crfsuite ap": (crfsuite("ap"), grid(max_iterations=(5, 10, 20, 50))),
    "crfsuite arow": (crfsuite("arow"), grid(gamma=(10.0, 1e3, 1e5), max_iterations=(10, 20))),
    "crfsuite lbfgs": (
        crfsuite("lbfgs"),
        grid(c2=(0.3, 1.0, 3.0), max_iterations=(60,))
        + grid(c2=(1.0,), max_iterations=(30, 100, 200)),
    ),
    "crfsuite l2sgd": (
        crfsuite("l2sgd"),
        grid(c2=(0.1, 0.3, 1.0, 3.0), max_iterations=(20,))
        + grid(c2=(0.3, 1.0), max_iterations=(10, 50)),
    ),
    "vowpalwabbit search": (vowpal, grid(passes=(1, 2, 3, 5, 8))),
}
#: Solver, surrogate and its values of C; 20 passes.
SURROGATES = (
    ("sgd", "margin", (0.03, 0.1, 0.3)),
    ("sgd", "probloss", (0.01, 0.03, 0.1)),
    ("bcfw", "margin", (0.03, 0.1, 0.3)),
    ("bcfw", "micro-f1:O", (1.0, 3.0, 10.0)),
)


# -- scores ---------------------------------------------------------------------------------------


def counts(truth: Labels, predicted: Labels) -> np.ndarray:
    """Right, predicted and true spans of every sentence."""
    rows = []
    for true, told in zip(truth, predicted, strict=True):
        a, b = set(spans(true)), set(spans(told))
        rows.append((len(a & b), len(b), len(a)))
    return np.array(rows)


def f1(rows: np.ndarray) -> Any:
    """Span F1 in per cent from counts, summed over the axis before the last."""
    right, told, true = np.moveaxis(rows.sum(axis=-2), -1, 0)
    return 200 * right / np.maximum(told + true, 1)


def shown(setting: Setting, tried: list[Setting]) -> str:
    values = {key: [one[key] for one in tried if key in one] for key in setting}
    told = (
        f"{k} {of_grid(v, values[k]) if len(set(values[k])) > 1 else v}" for k, v in setting.items()
    )
    return ", ".join(told)


def compare(names: list[str], held: Split, whole: Split, samples: np.ndarray) -> None:
    """The table of learners, and that of the quickest."""
    rows, picked, base = [], {}, None
    for name in names:
        begin, settings = LEARNERS[name]
        fit, tried = begin(held)[0], []
        for setting in settings:
            seconds, predicted = fit(setting)
            tried.append((seconds, float(f1(counts(held.new_tags, predicted))), setting))
            print(f"<!-- {name} {setting}: {tried[-1][:2]} -->", flush=True)
        best = max(score for _, score, _ in tried)
        _, score, setting = min((t for t in tried if t[1] >= best - 0.1), key=lambda one: one[0])
        fit, conversion = begin(whole)
        seconds, predicted = fit(setting)
        each = counts(whole.new_tags, predicted)
        drawn = f1(each[samples])
        base = drawn if base is None else base
        low, high = np.percentile(drawn, [2.5, 97.5])
        row = [f"{f1(each):.2f}", f"{seconds:.1f}", f"{seconds + conversion:.1f}"]
        again = partial(lambda fit, setting: fit(setting)[0], fit, setting)
        picked[name] = Chosen(seconds, float(f1(each)), high, [name, row[0]], again, conversion)
        rows.append([name, shown(setting, settings), f"{best:.2f}", f"{score:.2f}", row[0]])
        rows[-1] += [f"{low:.2f} to {high:.2f}", f"{np.mean(drawn > base):.2f}", *row[1:]]
        print(f"<!-- {rows[-1]} -->", flush=True)
    columns = ["learner", "chosen", "best F1, held out", "its F1, held out", "F1, test", "95 %"]
    columns += ["ahead of the first", "train CPU s", "with conversion"]
    print("\n### learners\n\n" + table(columns, rows))
    columns = ["of", "learner", "F1, test", "train CPU s", "with conversion"]
    print("### the quickest\n\n" + table(columns, quickest(picked)))


def by_setting(solver: str, name: str, settings: list[Setting], fold: Split) -> list[float]:
    """Span F1 on the sentences that a fold holds out, with each setting."""
    fit, _ = ours(solver, name)(fold)
    return [float(f1(counts(fold.new_tags, fit(setting)[1]))) for setting in settings]


def surrogates(folds: list[Split], whole: Split, samples: np.ndarray, jobs: int) -> None:
    """The table of surrogates: alpha by folds, differences to the margin."""
    rows, margin = [], None
    for solver, name, values in SURROGATES:
        settings, begin = grid(C=values, passes=(20,)), ours(solver, name)
        tasks = [(solver, name, settings, fold) for fold in folds]
        scores = np.array(in_processes(jobs, by_setting, tasks))
        print(f"<!-- {solver} {name}: {scores.tolist()} -->", flush=True)
        # The best setting of the other folds, for each.
        others = (scores.sum(axis=0) - scores).argmax(axis=1)
        outer, setting = scores[np.arange(len(folds)), others], settings[scores.mean(0).argmax()]
        predicted = begin(whole)[0](setting)[1]
        each = counts(whole.new_tags, predicted)
        drawn = f1(each[samples])
        right = np.mean(np.concatenate(predicted) == np.concatenate(whole.new_tags))
        row = [solver, name, shown(setting, settings), f"{outer.mean():.2f}", f"{f1(each):.2f}"]
        row += [f"{100 * right:.2f}"]
        if name == "margin":
            margin = outer, drawn, float(f1(each))
            rows.append([*row, None, None, None, None])
            continue
        assert margin is not None
        gain, low_high = outer - margin[0], np.percentile(drawn - margin[1], [2.5, 97.5])
        rows.append(
            [
                *row,
                f"{gain.mean():+.2f} ± {gain.std(ddof=1) / len(gain) ** 0.5:.2f}",
                f"{(gain > 0).sum()} of {len(gain)}",
                f"{f1(each) - margin[2]:+.2f}",
                f"{low_high[0]:+.2f} to {low_high[1]:+.2f}",
            ]
        )
    columns = ["solver", "surrogate", "chosen", "F1, folds", "F1, test", "tags right, test"]
    columns += ["above the margin, folds", "folds above", "above it, test", "95 %"]
    print("### surrogates\n\n" + table(columns, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", nargs="*", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--no-surrogates", action="store_true")
    parser.add_argument("--sentences", type=int, help="train on the first so many only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of the folds")
    args = parser.parse_args()
    header("CoNLL-2000 chunking, settings chosen on held-out sentences")
    items, tags, test, test_tags = chunked_sentences(args.sentences)
    rows, whole = np.arange(len(items)), Split(items, tags, test, test_tags)
    samples = np.random.default_rng(0).integers(len(test), size=(2000, len(test)))
    print(f"{len(items)} sentences, {len(test)} to test", flush=True)
    if args.learners:
        compare(args.learners, Split.hold_out(items, tags, rows % 10 == 0), whole, samples)
    if not args.no_surrogates:
        folds = [Split.hold_out(items, tags, rows % FOLDS == k) for k in range(FOLDS)]
        surrogates(folds, whole, samples, args.jobs)


if __name__ == "__main__":
    main()
