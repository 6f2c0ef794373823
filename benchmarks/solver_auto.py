"""CPU seconds of the default solver, and of those that it chooses among, to the same gap.

Twenty-seven problems, each by "bcfw", "admm" (four shards), "gbcfw", "lbfgs", "smoothing", with up
to a hundred weights "cutting-plane", and "auto" in one thread to a certified relative gap of --tol,
the estimator's default.  Seconds are process CPU seconds from the start of a run to the record that
certifies the gap, certificates and the rule's own pass included, packing left out; the least of
--repeat runs, interleaved, or of one that takes 5 seconds.
"-" is a problem that the solver does not take, ">" one that it did not finish in --limit seconds.
The second table tells the algorithm from the cores: the same shards on one thread and on two.

    STRUCTSOLVE_DATA=... python benchmarks/solver_auto.py [--only ocr-weak yeast] [--tol .001]
"""

from __future__ import annotations

import argparse
import pickle
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

MOST_PASSES = 5000
# Seconds from which a run is not repeated.
LONG = 5.0
# Weights up to which cutting planes take part: with many they take minutes.
FEW = 100
Made = tuple[Any, Any]


def words(part: str, constant: float | None, **settings: Any) -> Callable[[], Made]:
    """Handwritten words, C or the default alpha."""

    def make() -> Made:
        from datasets import ocr_split

        train, _ = ocr_split(0, part)
        problem = posed("chain", train.x_list("packed"), train.y_list(), **settings)
        return problem, None if constant is None else 1 / (constant * problem.n)

    return make


def posed(structure: str, X: Any, Y: Any, **settings: Any) -> Any:
    import structsolve

    space, examples = structsolve.get_structure(structure).make_space(X, Y)
    return structsolve.Problem(space, examples, **settings)


def chunks() -> Made:
    from cores import chunks as by_words

    return by_words(0.02)()[:2]


def templates(surrogate: str) -> Callable[[], Made]:
    """Chunks by words in their contexts, at the default alpha."""

    def make() -> Made:
        from datasets import conll2000

        from structsolve import SequenceVectorizer
        from structsolve.plugins.chain.token_features import conll_features

        sentences, Y = conll2000("train")
        X = SequenceVectorizer().fit_transform([conll_features(one) for one in sentences])
        n = None if surrogate == "margin" else 2000
        return posed("chain", X[:n], Y[:n], surrogate=surrogate), None

    return make


def trees(alpha: float) -> Callable[[], Made]:
    def make() -> Made:
        from cores import trees as parses

        return parses(alpha)()[:2]

    return make


def letters(surrogate: str, alpha: float | None) -> Callable[[], Made]:
    def make() -> Made:
        from datasets import mc_letter

        X, y, _, _ = mc_letter()
        return posed("multiclass", X, y, surrogate=surrogate), alpha

    return make


def digits() -> Made:
    """Pictures of digits, whose classes weights separate."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return posed("multiclass", X / 16, y), 1e-4


def generated() -> Made:
    """Dense rows of classes that no model separates, as ``likelihood.py`` has them."""
    from likelihood import generated as rows

    X, y, *_ = rows(20_000, 50, 10)()
    return posed("multiclass", X, y), None


def tall(n_classes: int, columns: int) -> Callable[[], Made]:
    """Many rows of few columns, of classes that overlap."""

    def make() -> Made:
        rng = np.random.default_rng(0)
        y = rng.integers(n_classes, size=50_000)
        X = 0.8 * y[:, None] + rng.normal(size=(50_000, columns))
        return posed("multiclass", X, y), None

    return make


def labels(name: str) -> Callable[[], Made]:
    def make() -> Made:
        from datasets import multilabel

        X, Y, _, _ = multilabel(name)
        return posed("multilabel", X, Y), None

    return make


def pictures(n: int, n_labels: int = 3, surrogate: str = "crf") -> Callable[[], Made]:
    """Noisy pictures of 6 x 6 pixels, whose blocks of 4 x 4 have one of a few labels."""

    def make() -> Made:
        rng, X, Y = np.random.default_rng(0), [], []
        for _ in range(n):
            Y.append(rng.integers(n_labels, size=(2, 2)).repeat(4, 0).repeat(4, 1)[:6, :6])
            X.append(np.eye(3)[Y[-1]] + rng.normal(size=(6, 6, 3)))
        return posed("grid", X, Y, surrogate=surrogate), None

    return make


def overlapping() -> Made:
    """Sequences of three classes in three columns, which overlap."""
    rng = np.random.default_rng(0)
    means, Y = rng.normal(size=(3, 3)), rng.integers(3, size=(2000, 6))
    return posed("chain", means[Y] + 1.5 * rng.normal(size=(2000, 6, 3)), list(Y)), None


def noisy(structure: str, alpha: float | None = None) -> Callable[[], Made]:
    """Sequences or trees of eight labels that no model fits, in thirty columns."""

    def make() -> Made:
        rng, X, Y = np.random.default_rng(0), [], []
        directions = rng.normal(size=(30, 8))
        for _ in range(2000):
            x = rng.normal(size=(int(rng.integers(3, 12)), 30))
            Y.append((x @ directions + 2 * rng.gumbel(size=(len(x), 8))).argmax(axis=1))
            parents = [int(rng.integers(-1, v)) if v else -1 for v in range(len(x))]
            X.append(x if structure == "chain" else (x, np.array(parents)))
        return posed(structure, X, Y), alpha

    return make


def segments() -> Made:
    """300 sequences in segments, nine tenths of them cut as a model has them."""
    from structsolve import StructuredSVM, get_structure

    structure, rng = get_structure("semi-markov"), np.random.default_rng(0)
    X, Y = structure.sample(0, n=300, size=40)
    model = StructuredSVM(structure, max_iter=20, tol=0.1).fit(X[:20], Y[:20])
    Y = [y if rng.random() < 0.1 else told for y, told in zip(Y, model.predict(X))]
    return posed("semi-markov", X, Y), None


TASKS = {
    "ocr C=1": words("nine", 1.0),
    "ocr C=.02": words("nine", 0.02),
    "ocr fold, default alpha": words("one", None),
    "ocr fold, crf, C=1": words("one", 1.0, surrogate="crf"),
    "ocr fold, crf, C=10": words("one", 10.0, surrogate="crf"),
    "ocr fold, max-min, C=.02": words("one", 0.02, surrogate="max-min"),
    "10 pictures, crf, default alpha": pictures(10),
    "100 pictures, crf, default alpha": pictures(100),
    "100 pictures of two labels, default alpha": pictures(100, 2, "margin"),
    "2000 pictures of two labels, default alpha": pictures(2000, 2, "margin"),
    "2000 sequences, three columns, default alpha": overlapping,
    "2000 sequences, thirty columns, default alpha": noisy("chain"),
    "2000 sequences, thirty columns, alpha=1e-5": noisy("chain", 1e-5),
    "2000 trees, thirty columns, default alpha": noisy("tree"),
    "300 sequences in segments, default alpha": segments,
    "conll by words, C=.02": chunks,
    "conll, default alpha": templates("margin"),
    "conll, 2000 sentences, crf, default alpha": templates("crf"),
    "dependency, alpha=3e-4": trees(3e-4),
    "dependency, alpha=1e-3": trees(1e-3),
    "letter, multiclass": letters("margin", None),
    "letter, multiclass, crf, alpha=1e-6": letters("crf", 1e-6),
    "digits, multiclass, alpha=1e-4": digits,
    "generated, multiclass": generated,
    "generated, two classes, 5 columns": tall(2, 5),
    "generated, five classes, one column": tall(5, 1),
    "scene, multilabel": labels("scene"),
}


def train(problem: Any, alpha: float, solver: Any, args: Any, jobs: int = 1) -> tuple[Any, ...]:
    """CPU and wall seconds to the gap, and the name of the solver; None if it was not reached."""
    from structsolve.solvers import Auto, choose_solver
    from structsolve.solvers.choose import begin
    from structsolve.solvers.run import Start, relative_gap

    problem = pickle.loads(pickle.dumps(problem))  # operators without what they have seen
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        taken = solver
        if isinstance(solver, Auto):
            taken = choose_solver(solver, problem, alpha, jobs)
        start = Start(problem, alpha, np.random.default_rng(0), jobs, None, args.tol)
        run = begin(taken, start, solver)
    except ValueError:
        return None, None, "-"
    for _ in range(MOST_PASSES):
        record = run.step()
        spent = time.process_time() - cpu, time.perf_counter() - wall
        gap = relative_gap(record)
        if record["certified"] and gap is not None and gap <= args.tol:
            return *spent, getattr(run, "solver", taken).name
        if spent[0] > args.limit:
            break
    return None, None, ">"


def compared(args: argparse.Namespace) -> None:
    from structsolve.estimators.alpha import default_alpha
    from structsolve.solvers import BCFW, GBCFW, LBFGS, Auto, ConsensusADMM, CuttingPlane, Smoothing

    kinds = {"bcfw": BCFW(), "admm": ConsensusADMM(), "gbcfw": GBCFW(), "lbfgs": LBFGS(steps=5)}
    kinds |= {"smoothing": Smoothing(), "cutting-plane": CuttingPlane(), "auto": Auto()}
    shards = ConsensusADMM(2, finish=0.01)
    rows, cores = [], []
    for name in args.only:
        problem, alpha = TASKS[name]()
        alpha = default_alpha(problem) if alpha is None else alpha
        wide = problem.dim > FEW
        best: dict[str, Any] = {"cutting-plane": "-"} if wide else {}
        chosen, missed = "", {"cutting-plane"} if wide else set()
        for _ in range(args.repeat):
            for kind, solver in kinds.items():
                if kind in missed or best.get(kind, 0.0) > LONG:
                    continue
                seconds, _, what = train(problem, alpha, solver, args)
                if seconds is None:
                    best[kind] = what
                    missed.add(kind)
                    continue
                best[kind] = min(best.get(kind, np.inf), seconds)
                chosen = what if kind == "auto" else chosen
        least = min(s for kind, s in best.items() if kind != "auto" and isinstance(s, float))
        ratio = best["auto"] / least if isinstance(best["auto"], float) else None
        rows.append([name, f"{alpha:.3g}", *(best[kind] for kind in kinds), chosen, ratio])
        if chosen == "admm":
            for jobs in (1, 2):
                times = [train(problem, alpha, shards, args, jobs)[:2] for _ in range(args.repeat)]
                cpu, wall = (min(column) for column in zip(*times))
                cores.append([name, jobs, cpu, wall])
    columns = ["problem", "alpha", *(f"{kind} [CPU s]" for kind in kinds), "auto took"]
    print("\n" + table([*columns, "auto / best"], rows))
    print("What auto took where that is admm, by threads; wall seconds depend on the free cores:\n")
    print(table(["problem", "threads", "CPU s", "wall s"], cores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--tol", type=float, default=0.01)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    header(f"The default solver, CPU seconds to a relative gap of {args.tol:g}")
    if structsolve_or_none() is None:
        return
    warnings.simplefilter("ignore")
    compared(args)


if __name__ == "__main__":
    main()
