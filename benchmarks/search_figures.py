"""Slack rescaling by optimiser and search: the questions of Figures 4.7, 4.8 and 4.11 to 4.17.

The optimisers are cutting planes with a cut per example and pass (as in the thesis), SGD and BCFW.

"success" (Table 4.1): each optimiser runs with angular search; at the weights where its passes
begin, every search is tried from scratch on every example.  It succeeds if its label exceeds by
0.01 what the labels of earlier passes give.  "missed" is the share of problems where another search
finds a better label.

"program" (Figure 4.16): CPU seconds in the quadratic program of cutting planes until a certified
gap of 10 %, by the number of examples; with relaxed oracles (RCV1, Enron) it stays open, and the
rows are 100 passes.

"course" (all others): objective, test accuracy and micro-F1 over oracle calls, CPU seconds and
passes, at most 2 CPU seconds of a run; "one cut a pass" are cutting planes as they are by default.
The objective is that of the labels which the convex hull search finds, measured after some of the
passes; "above" is relative to the least of all runs, of which one has four times the passes.

Enron has the leaves of its hierarchy as labels.  RCV1 is tested on rows of the first half.

    STRUCTSOLVE_DATA=... python benchmarks/search_figures.py --sets yeast --parts program
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time
from typing import Any

import numpy as np
from common import header, picture, structsolve_or_none, table
from datasets import data_path, multilabel
from searches import SEARCHES, WORSE
from searches import SETS as SEARCHED

# name -> labels kept, oracle, alpha, passes of a course.
SETS = {
    "yeast": (*SEARCHED["yeast"][:2], 1.0, 60),
    "rcv1-subset1": (*SEARCHED["rcv1-subset1"][:2], 0.01, 25),
    "enron": (None, "roof-duality", 0.1, 25),
}
OPTIMISERS = ("cutting planes", "SGD", "BCFW")
ONE_CUT = "one cut a pass"
# Success in the thesis, for cutting planes.
SUCCESS = {
    "yeast": {"angular": 0.224, "bisecting": 0.165, "sarawagi": 0.164},
    "rcv1-subset1": {"angular": 0.256, "bisecting": 0.182, "sarawagi": 0.18},
}
EPSILON = 0.01
# Set, examples, alpha and searches of a course.
ALL, HULL = ("sarawagi", "bisecting", "angular", "convex-hull"), ("convex-hull",)
COURSES = (
    ("yeast", 160, 0.01, HULL),
    ("yeast", 160, 1.0, ALL),
    ("yeast", 320, 1.0, HULL),
    ("yeast", 640, 1.0, HULL),
    ("enron", 160, 0.1, HULL),
    ("enron", 80, 0.1, HULL),
    ("rcv1-subset1", 40, 0.01, ALL),
)
PROGRAM_GAP = 0.1
PROGRAM = {"yeast": (10, 20, 40, 80), "rcv1-subset1": (10, 20, 40), "enron": (10, 20, 40)}
# A course ends with the pass in which it has taken as many CPU seconds.
LIMIT = 2
REACHED = (0.1, 0.01)
COLUMNS = [
    "set, examples, alpha", "surrogate", "optimiser", "passes", "calls", "CPU s", "in the program",
    *(f"{what} to {share:.0%}" for share in REACHED for what in ("calls", "s", "passes")),
    "above at the end", "accuracy, 1 pass", "5 passes", "at the end", "micro-F1",
]  # fmt: skip


def enron() -> tuple[Any, ...]:
    """Training rows and sets of leaves, and the same to test."""
    with np.load(data_path("hmc-enron", "data.npz"), allow_pickle=False) as data:
        leaves = np.setdiff1d(np.arange(len(data["node_names"])), data["edges"][:, 1])
        arrays = []
        for part in ("train", "test"):
            X, bounds = data[f"X_{part}"].astype(float), data[f"Y_{part}_indptr"]
            Y = np.zeros((len(X), len(data["node_names"])), dtype=int)
            Y[np.repeat(np.arange(len(X)), np.diff(bounds)), data[f"Y_{part}_indices"]] = 1
            arrays += [X, Y[:, leaves]]
    return tuple(arrays)


def rows_of(name: str, n: int) -> tuple[Any, ...]:
    """As many training rows and label sets, and up to 1000 others to test."""
    X, Y, X_test, Y_test = enron() if name == "enron" else multilabel(name, SETS[name][0])
    order = np.random.default_rng(0).permutation(len(Y))
    if name == "rcv1-subset1":
        X_test, Y_test = X[order[-1000:]], Y[order[-1000:]]
    return X[order[:n]], Y[order[:n]], X_test, Y_test


def make_solver(optimiser: str) -> Any:
    from structsolve import solvers

    if optimiser in ("cutting planes", ONE_CUT):
        return solvers.CuttingPlane(slack="one" if optimiser == ONE_CUT else "n")
    return solvers.SGD() if optimiser == "SGD" else solvers.BCFW()


def structure(name: str) -> Any:
    from structsolve import get_structure

    return get_structure("multilabel", oracle=SETS[name][1], edges="full")


def slack(search: str, warm_start: bool = True) -> Any:
    from structsolve.surrogates import Slack

    return Slack(search=search, relaxed=False, warm_start=warm_start)


def points(space: Any, examples: Any, optimiser: str, alpha: float, passes: int) -> list[Any]:
    """The weights at which the passes of an optimiser begin, until a certified gap of 1 %."""
    from structsolve import Problem
    from structsolve.solvers.run import Start

    problem = Problem(space, examples, surrogate=slack("angular"))
    run = make_solver(optimiser).start(Start(problem, alpha, np.random.default_rng(0)))
    met = []
    for _ in range(passes):
        if optimiser == "cutting planes":
            w = run.next
        else:
            w = run.loop.last() if optimiser == "SGD" else run.loop.w
        met.append(np.array(w))
        record = run.step()
        if record["certified"] and record["gap"] <= 0.01 * record["primal"]:
            break
    return met


class Kept:
    """The labels of earlier passes of each example."""

    def __init__(self, problem: Any):
        self.problem = problem
        self.labels: list[dict[bytes, np.ndarray]] = [{} for _ in range(problem.n)]

    def value(self, i: int, w: np.ndarray) -> float:
        """The largest (1 + h) g of the labels, at least 0."""
        from structsolve.potentials.calls import score
        from structsolve.structure.calls import encode

        problem = self.problem
        theta, truth = score(problem.potentials, i, w), problem.examples.label(i)

        def value(label: np.ndarray) -> float:
            index, entries = encode(problem.parts, i, label)
            return float(theta[index] @ entries)

        right, best = value(truth), 0.0
        for label in self.labels[i].values():
            best = max(best, (1 + value(label) - right) * float((label != truth).sum()))
        return best

    def add(self, i: int, label: np.ndarray) -> None:
        self.labels[i][label.tobytes()] = label


def success(name: str, n: int, passes: int) -> list[list[Any]]:
    """Rows: set, optimiser, search, problems, success, that of the thesis, missed, calls."""
    from structsolve import Problem

    X, Y, _, _ = rows_of(name, n)
    space, examples = structure(name).make_space(X, Y)
    problems = {s: Problem(space, examples, surrogate=slack(s, False)) for s in SEARCHES}
    rows = []
    for optimiser in OPTIMISERS:
        kept, results, before = Kept(problems["angular"]), {s: [] for s in SEARCHES}, []
        for w in points(space, examples, optimiser, SETS[name][2], passes):
            for i in range(n):
                before.append(kept.value(i, w))
                for search, problem in problems.items():
                    results[search].append(problem.trace(i, w))
                kept.add(i, results["angular"][-1].label)
        values = {s: np.array([max(r.value, 0) for r in rs]) for s, rs in results.items()}
        best = np.max(list(values.values()), axis=0)
        for search in SEARCHES:
            published = SUCCESS[name].get(search) if optimiser == "cutting planes" else None
            rows.append(
                [
                    f"{name}, {n}",
                    optimiser,
                    search,
                    len(best),
                    f"{np.mean(values[search] > np.array(before) + EPSILON):.4f}",
                    published,
                    f"{np.mean(values[search] < best * (1 - WORSE)):.4f}",
                    f"{np.mean([r.calls for r in results[search]]):.2f}",
                ]
            )
    return rows


def inside_program(history: list[dict[str, Any]]) -> float:
    """The share of time in the quadratic program."""
    inside = sum(record.get("qp_seconds", 0) for record in history)
    return float(inside / sum(record["seconds"] for record in history))


def program(name: str, sizes: list[int]) -> tuple[list[list[Any]], list[float]]:
    """Rows of cutting planes to PROGRAM_GAP, and the seconds in the program by size."""
    from structsolve import StructuredSVM

    rows, seconds = [], []
    for n in sizes:
        X, Y, _, _ = rows_of(name, n)
        begun = process_time()
        model = StructuredSVM(
            structure(name),
            surrogate=slack("convex-hull"),
            solver=make_solver("cutting planes"),
            alpha=SETS[name][2],
            tol=PROGRAM_GAP,
        ).fit(X, Y)
        whole, history = process_time() - begun, model.history_
        inside = whole * inside_program(history)
        seconds.append(inside)
        gap = history[-1]["gap"] / history[-1]["primal"]
        cells = [f"{inside:.2f}", f"{whole - inside:.2f}", f"{inside / whole:.3f}"]
        rows.append([name, n, len(history), f"{gap:.4f}", history[-1]["cuts"], *cells])
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"{name}: seconds in the program grow like n to the power of {slope:.2f}\n", flush=True)
    return rows, seconds


def score_of(space: Any, w: np.ndarray, X: Any, Y: np.ndarray) -> tuple[float, float]:
    """Accuracy (labels in both sets over those in either) and micro-F1."""
    from structsolve.estimators.decode import decode
    from structsolve.potentials.model import LinearModel
    from structsolve.structure.ask import make_layout

    new = space.pack(X)
    potentials, w = LinearModel(space, w).scores(new)
    labels, _ = decode(potentials, space.make_oracle()(make_layout(space, new)), w, {})
    predicted = labels.reshape(Y.shape)
    both, either = (predicted & Y).sum(axis=1), (predicted | Y).sum(axis=1)
    accuracy = np.where(either > 0, both / np.maximum(either, 1), 1).mean()
    return float(accuracy), float(2 * both.sum() / max((both + either).sum(), 1))


class Course:
    """A run: pass, oracle calls so far, CPU seconds so far and weights, after each pass."""

    def __init__(self, data: Any, surrogate: Any, optimiser: str, alpha: float, passes: int):
        from structsolve import StructuredSVM

        space, X, Y = data
        self.points: list[tuple[int, int, float, np.ndarray]] = []
        calls, aside, begun = 0, 0.0, process_time()

        def watch(record: dict[str, Any]) -> bool:
            nonlocal calls, aside
            now = process_time()
            calls += record["oracle_calls"]
            seconds = now - begun - aside
            self.points.append((record["pass"], calls, seconds, record["weights"]()))
            aside += process_time() - now
            return seconds > LIMIT

        model = StructuredSVM(
            space.structure,
            surrogate=surrogate,
            loss="hamming",
            solver=make_solver(optimiser),
            alpha=alpha,
            max_iter=passes,
            tol=1e-4,
            callbacks=[watch],
        ).fit(X, Y)
        self.share = inside_program(model.history_)
        # Passes at which objective and scores are measured, few where they change little.
        last = len(self.points)
        chosen = {1, 2, 3, 5, *np.geomspace(1, last, 9).astype(int).tolist()}
        self.points = [point for point in self.points if point[0] in chosen]


def objective(problem: Any, w: np.ndarray, alpha: float) -> float:
    """The objective of a margin problem, or of slack by the labels that its search returns."""
    if not hasattr(problem.surrogate, "trace"):
        return float(problem.primal(w, alpha)[0])
    values = [max(problem.trace(i, w).value, 0) for i in range(problem.n)]
    return float(problem.regulariser(w, alpha) + np.mean(values))


def courses(
    name: str, n: int, alpha: float, searches: Any
) -> tuple[list[list[Any]], dict[Any, Any]]:
    """Rows, and the courses (calls, seconds, share above the least objective) by their names."""
    from structsolve import Problem

    passes = SETS[name][3]
    X, Y, X_test, Y_test = rows_of(name, n)
    space, examples = structure(name).make_space(X, Y)
    data = space, X, Y
    rows, curves = [], {}
    for kind in ("margin", "slack"):
        judge: Any = "margin"
        if kind == "slack":
            judge = slack("convex-hull")
        problem = Problem(space, examples, surrogate=judge)
        # A longer run for the least objective.
        runs = {("", ""): Course(data, judge, "BCFW", alpha, 4 * passes)}
        for optimiser in (*OPTIMISERS, ONE_CUT):
            for search in searches if kind == "slack" else [""]:
                surrogate = slack(search) if search else "margin"
                runs[optimiser, search] = Course(data, surrogate, optimiser, alpha, passes)
        values = {
            key: np.array([objective(problem, point[-1], alpha) for point in run.points])
            for key, run in runs.items()
        }
        least = min(v.min() for v in values.values())
        del runs["", ""]
        for (optimiser, search), run in runs.items():
            above = np.minimum.accumulate(values[optimiser, search]) / least - 1
            scores = {p[0]: score_of(space, p[-1], X_test, Y_test) for p in run.points}
            who = f"{kind} {search}".strip()
            curves[who, optimiser] = run.points, above
            rows.append([f"{name}, {n}, {alpha:g}", who, optimiser, *cells(run, above, scores)])
    return rows, curves


def cells(run: Course, above: np.ndarray, scores: dict[int, Any]) -> list[Any]:
    passes, calls, seconds, _ = run.points[-1]
    row: list[Any] = [passes, calls, f"{seconds:.2f}", f"{run.share:.2f}"]
    for share in REACHED:
        reached = np.flatnonzero(above <= share)
        point = run.points[reached[0]] if len(reached) else None
        row += ["-"] * 3 if point is None else [point[1], f"{point[2]:.3f}", point[0]]
    accuracies = [scores[k][0] if k in scores else None for k in (1, 5)]
    accuracies += [scores[passes][0]]
    return [*row, f"{above[-1]:.4f}", *accuracies, f"{scores[passes][1]:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parts = ["success", "program", "course"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--largest", type=int, default=640, help="examples")
    numbers = range(len(COURSES))
    parser.add_argument("--courses", nargs="+", type=int, default=numbers, choices=numbers)
    args = parser.parse_args()
    header("Slack rescaling by optimiser and search")
    warnings.simplefilter("ignore", RuntimeWarning)  # of models that predict no label at first
    if structsolve_or_none() is None:
        return
    if "success" in args.parts:
        rows = []
        for name in [name for name in args.sets if name in SUCCESS]:
            rows += success(name, min(80, args.largest), 40)
        columns = ["set, examples", "optimiser", "search", "problems", "success"]
        print(f"### Success\n\n{table([*columns, 'thesis: success', 'missed', 'calls'], rows)}")
    if "program" in args.parts:
        rows = []
        with picture("search_program", "Cutting planes to a gap of 10 %") as ax:
            for name in args.sets:
                sizes = [n for n in PROGRAM[name] if n <= args.largest]
                more, seconds = program(name, sizes)
                ax.plot(sizes, seconds, "o-", label=name)
                rows += more
            ax.set(xlabel="examples", ylabel="seconds in the program", xscale="log", yscale="log")
            ax.legend()
        columns = ["set", "examples", "passes", "gap", "cuts", "s in the program", "other s"]
        print(f"### Program\n\n{table([*columns, 'share in the program'], rows)}")
    if "course" in args.parts:
        course([COURSES[k] for k in args.courses], args.largest)


def course(chosen: list[Any], largest: int) -> None:
    """Prints the table of courses and draws that of all searches on Yeast."""
    rows = []
    for name, n, alpha, searches in chosen:
        more, curves = courses(name, min(n, largest), alpha, searches)
        rows += more
        if name == "yeast" and searches is ALL:
            draw(curves)
    print(f"\n### Course\n\n{table(COLUMNS, rows)}", flush=True)


def draw(curves: dict[Any, Any]) -> None:
    colours = dict(zip((*OPTIMISERS, ONE_CUT), ("tab:red", "tab:green", "tab:blue", "tab:gray")))
    lines = {"angular": "-", "bisecting": "--", "sarawagi": ":", "convex-hull": "-."}
    with picture("search_course", "Slack rescaling on Yeast, 160 examples") as ax:
        for (who, optimiser), (points, above) in curves.items():
            kind, _, search = who.partition(" ")
            if kind == "slack":
                seconds = [point[2] for point in points]
                style = {"color": colours[optimiser], "linestyle": lines[search]}
                ax.plot(seconds, 100 * above + 1e-3, label=f"{optimiser}, {search}", **style)
        ax.set(xlabel="CPU seconds", ylabel="% above the least objective")
        ax.set(xscale="log", yscale="log")
        ax.legend(fontsize="small", ncols=2)


if __name__ == "__main__":
    main()
