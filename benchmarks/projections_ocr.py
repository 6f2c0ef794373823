"""Training with projections on OCR letters: gaps by pass, and the time of a pass by surrogate.

The data are one fold (626 words), with raw pixels and alpha = 1 / (C n).  Costs: the median CPU
time of passes without certificates, in a second training so that packing does not count, against
BCFW with the margin and one oracle call per word and pass (``cached_passes=0``), measured before
and after; the target for the max-min margin with warm starts is at most ten times that.  Gaps:
certified after every pass, for the better of averaged and plain iterate.  A second table has
passes and CPU time to one gap, and the letters then wrong on the other nine folds.  Marginals:
sum-product of all words against python-crfsuite's, for the same number of marginals.

    STRUCTSOLVE_DATA=... python benchmarks/projections_ocr.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Clock, header, median_time, picture, ratio, structsolve_or_none, table
from datasets import Words, ocr_split

SHOWN = (1, 2, 3, 5, 10, 20, 30)
ITERATIONS = (1, 2, 5, 10)


def runs(certify_every: int) -> dict[str, tuple[Any, Any]]:
    """Name -> surrogate and solver."""
    from structsolve.solvers import BCFW, GBCFW
    from structsolve.surrogates import MaxMin

    solver = GBCFW(certify_every=certify_every)
    settings: dict[str, tuple[Any, Any]] = {
        "M3N": ("margin", BCFW(cached_passes=0, certify_every=certify_every)),
        "CRF": ("crf", solver),
    }
    for k in ITERATIONS:
        settings[f"M4N, {k} iterations"] = (MaxMin(max_iter=k), solver)
    settings["M4N, mirror prox, 10 iterations"] = (MaxMin("euclidean", max_iter=10), solver)
    harmonic = GBCFW(step="harmonic", certify_every=certify_every)
    settings["M4N, 1 iterations, harmonic step"] = (MaxMin(max_iter=1), harmonic)
    return settings


def model_of(structsolve: Any, words: Words, C: float, passes: int, how: tuple[Any, Any]) -> Any:
    return structsolve.StructuredSVM(
        "chain",
        surrogate=how[0],
        solver=how[1],
        alpha=1 / (C * words.n_words),
        max_iter=passes,
        tol=0.0,
    )


def gaps(structsolve: Any, words: Words, C: float, passes: int) -> None:
    x, y = words.x_list("packed"), words.y_list()
    shown = [p for p in SHOWN if p <= passes]
    rows = []
    curves = {}
    for name, how in runs(certify_every=1).items():
        model = model_of(structsolve, words, C, passes, how).fit(x, y)
        relative = [line["gap"] / line["primal"] for line in model.history_]
        curves[name] = relative
        last = model.history_[-1]
        rows.append(
            [name, *[f"{relative[p - 1]:.3f}" for p in shown], last["primal"], last["dual"]]
        )
        print(f"<!-- {name}: done -->", flush=True)
    print(table(["relative gap after pass", *map(str, shown), "primal", "dual"], rows), flush=True)
    with picture("projections_ocr", f"OCR, one fold, C = {C:g}") as ax:
        inset = ax.inset_axes((0.57, 0.45, 0.41, 0.25))  # where curves lie on each other
        styles = ["-", "-", "-", "--", "-.", ":", "--", "-"]
        for (name, relative), style in zip(curves.items(), styles, strict=True):
            places = np.arange(1, len(relative) + 1)
            ax.semilogy(places, relative, style, label=name)
            inset.plot(places, relative / np.array(curves["M3N"]), style)
        inset.set_title("as a share of M3N's", fontsize=8)
        inset.set_ylim(0.5, 1.1)
        inset.tick_params(labelsize=7)
        ax.set_xlabel("pass")
        ax.set_ylabel("relative duality gap")
        ax.legend(loc="lower left", fontsize=8)


def equal_gaps(structsolve: Any, words: Words, test: Words, C: float, most: int) -> None:
    """Passes and CPU seconds to the same gap."""
    x, y = words.x_list("packed"), words.y_list()
    test_x, truth = test.x_list("packed"), np.concatenate(test.y_list())
    rows = []
    for surrogate, solver in (
        ("margin", "bcfw"),
        ("crf", "gbcfw"),
        ("max-min", "bcfw"),
        ("max-min", "gbcfw"),
    ):
        model = model_of(structsolve, words, C, most, (surrogate, solver)).set_params(tol=0.02)
        with Clock() as clock:
            model.fit(x, y)
        gap = model.history_[-1]["gap"] / model.history_[-1]["primal"]
        wrong = float((np.concatenate(model.predict(test_x)) != truth).mean())
        rows.append(
            [surrogate, solver, model.n_iter_, clock.cpu, f"{gap:.3f}", f"{100 * wrong:.2f} %"]
        )
    columns = ["surrogate", "solver", "passes", "CPU s", "relative gap", "wrong letters"]
    print(table(columns, rows), flush=True)


def pass_times(model: Any, x: Any, y: Any) -> list[float]:
    """CPU seconds of every pass but the first and the last, which certifies."""
    import time

    marks: list[float] = []
    model.set_params(callbacks=[lambda record: marks.append(time.process_time())])
    model.fit(x, y)
    return np.diff(marks)[:-1].tolist()


def costs(structsolve: Any, words: Words, C: float, passes: int) -> None:
    x, y = words.x_list("packed"), words.y_list()
    never = 10**6
    makers = runs(never)

    def margin() -> float:
        model = model_of(structsolve, words, C, passes, makers["M3N"])
        return float(np.median(pass_times(model, x, y)))

    base, rows = margin(), []
    for name, how in makers.items():
        if name != "M3N":
            times = pass_times(model_of(structsolve, words, C, passes, how), x, y)
            rows.append((name, float(np.median(times)), times[0], times[-1]))
    base = float(np.median([base, margin(), margin()]))
    print(
        table(
            ["pass of", "median ms", "second pass, ms", "last, ms", "times a pass of M3N"],
            [["M3N (BCFW)", 1e3 * base, None, None, "1.00"]]
            + [
                [name, 1e3 * middle, 1e3 * first, 1e3 * last, f"{middle / base:.1f}"]
                for name, middle, first, last in rows
            ],
        ),
        flush=True,
    )


def marginals(structsolve: Any, repeat: int) -> None:
    """Time of all marginals of a fold, python-crfsuite's against ours."""
    try:
        from peers import Crfsuite

        train, _ = ocr_split(0, "one")
        peer = Crfsuite(train.crfsuite_items(), train.y_list())
    except ImportError:
        print("(marginals skipped: python-crfsuite is not importable)\n")
        return
    peer.train("lbfgs", c2=1.0, max_iterations=20)
    tagger, prepared = peer.tagger(), peer.prepare(train.crfsuite_items())
    names = tagger.labels()
    lengths = np.diff(train.offsets).tolist()

    def every(ask: int) -> Callable[[], None]:
        asked = names[:ask]

        def run() -> None:
            for item, length in zip(prepared, lengths, strict=True):
                tagger.set(item)
                for t in range(length):
                    for name in asked:
                        tagger.marginal(name, t)

        return run

    model = structsolve.StructuredSVM(
        structsolve.get_structure("chain", start_end=True),
        surrogate="crf",
        solver="gbcfw",
        alpha=1.0 / train.n_words,
        max_iter=10,
    ).fit(train.x_list("packed"), train.y_list())
    x = train.x_list("packed")
    ours, _, _ = median_time(lambda: model.predict_marginals(x), repeat)
    rows = [["ours, predict_marginals", 1e6 * ours / train.n_letters, "1.00x"]]
    for ask in (1, len(names)):
        cpu, _, _ = median_time(every(ask), repeat)
        label = f"crfsuite tagger, set and marginal() of {ask} of {len(names)} labels"
        rows.append([label, 1e6 * cpu / train.n_letters, ratio(cpu, ours)])
    print(table(["marginals of a fold", "us a letter", "this / ours"], rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--passes", type=int, default=30, help="of the gaps")
    parser.add_argument("--timed", type=int, default=10, help="passes of the costs, at least 3")
    parser.add_argument("--repeat", type=int, default=5, help="runs of the marginals")
    parser.add_argument("--most", type=int, default=300, help="passes to one gap")
    parser.add_argument("--only", choices=["gaps", "equal", "costs", "marginals"])
    args = parser.parse_args()
    header("Margin, CRF and max-min margin on OCR letters")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    words, test = ocr_split(0, "one")
    with Clock() as clock:
        if args.only in (None, "costs"):
            costs(structsolve, words, args.C, args.timed)
        if args.only in (None, "marginals"):
            marginals(structsolve, args.repeat)
        if args.only in (None, "gaps"):
            gaps(structsolve, words, args.C, args.passes)
        if args.only in (None, "equal"):
            equal_gaps(structsolve, words, test, args.C, args.most)
    print(f"in all: {clock}\n")


if __name__ == "__main__":
    main()
