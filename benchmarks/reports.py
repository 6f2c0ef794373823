"""Reports of spans beside seqeval's, of hierarchies beside HiClass's: the same numbers, and time.

Spans: random tag sequences, broken in any way, in every mode: each row of the reports is compared.
seqeval's IOE1 misses spans of one token that a span of the same type follows, as its source says;
ours is compared with its rules plus the missing ones, and with its own where no span begins with E.
Then the time of a report of CoNLL-2000's training chunks (or as many generated ones), of which one
tag in ten is changed at random.

Hierarchies: random paths of four levels; HiClass takes tables of levels, so do we.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/reports.py
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import header, median_time, table
from environments import enter

MARKS = {"conll": "BIES", "IOB1": "BI", "IOB2": "BI", "IOE1": "IE", "IOE2": "IE", "IOBES": "BIES"}
MARKS["BILOU"] = "BILU"
ROWS = {"micro avg": "micro", "macro avg": "macro", "weighted avg": "weighted"}
FIGURES = {"precision": "precision", "recall": "recall", "f1-score": "f1", "support": "support"}


def sequences(marks: str, suffix: bool, n: int) -> Iterator[tuple[list[Any], list[Any]]]:
    rng = random.Random(0)

    def tag() -> str:
        if rng.random() < 0.3:
            return "O"
        kind, mark = rng.choice(["A", "B-x", "C"]), rng.choice(marks)
        if rng.random() < 0.05:
            return mark
        return f"{kind}-{mark}" if suffix else f"{mark}-{kind}"

    for _ in range(n):
        truth = [[tag() for _ in range(rng.randint(1, 8))] for _ in range(rng.randint(1, 4))]
        yield truth, [[tag() if rng.random() < 0.5 else one for one in row] for row in truth]


def scheme_of(name: str) -> Any:
    """seqeval's scheme; IOE1 with the beginnings that it lacks."""
    from seqeval import scheme

    if name != "IOE1":
        return getattr(scheme, name)

    class IOE1(scheme.IOE1):
        start_patterns = scheme.IOE1.start_patterns | {
            (scheme.Prefix.O, scheme.Prefix.E, scheme.Tag.ANY),
            (scheme.Prefix.I, scheme.Prefix.E, scheme.Tag.DIFF),
            (scheme.Prefix.E, scheme.Prefix.E, scheme.Tag.DIFF),
        }

    return IOE1


def differences(name: str, suffix: bool, n: int) -> tuple[int, int]:
    """Numbers of reports compared, and of those with any other number."""
    from seqeval.metrics import classification_report

    from structsolve.plugins.chain.metrics import span_f1

    compared = wrong = 0
    strict = {} if name == "conll" else {"mode": "strict", "scheme": scheme_of(name)}
    for truth, guess in sequences(MARKS[name], suffix, n):
        ours = span_f1(truth, guess, name, suffix=suffix, broken="drop")
        if not ours["per_type"]:  # seqeval fails without any span
            continue
        theirs = classification_report(truth, guess, output_dict=True, suffix=suffix, **strict)
        mine = {row: ours[key] for row, key in ROWS.items()}
        mine |= {kind or "_": row for kind, row in ours["per_type"].items()}
        same = mine.keys() == theirs.keys() and all(
            np.isclose(theirs[row][figure], mine[row][own], rtol=1e-12)
            for row in mine
            for figure, own in FIGURES.items()
        )
        compared, wrong = compared + 1, wrong + (not same)
    return compared, wrong


def chunks(limit: int | None = None) -> tuple[list[list[str]], list[list[str]]]:
    """Tags of CoNLL-2000's training sentences, and a copy with one in ten changed."""
    from structsolve.plugins.chain.spans import tags_from_spans

    rng = np.random.default_rng(0)
    path = Path(os.environ.get("STRUCTSOLVE_DATA", ""), "seq-conll2000", "train.txt.gz")
    if path.exists():
        text = gzip.decompress(path.read_bytes()).decode().strip()
        truth = [[line.split()[2] for line in b.splitlines()] for b in text.split("\n\n")]
    else:
        kinds = ["NP", "VP", "PP", "ADVP", "SBAR"]
        truth = [
            tags_from_spans([(2 * k, 2 * k + 2, rng.choice(kinds)) for k in range(12)], 24)
            for _ in range(9000)
        ]
    every = sorted({tag for one in truth for tag in one})
    guess = [[rng.choice(every) if rng.random() < 0.1 else tag for tag in one] for one in truth]
    return truth, [[str(tag) for tag in one] for one in guess]


def interleaved(calls: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Least CPU seconds of calls that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            seconds[name].append(median_time(call, 1)[0])
    return {name: min(each) for name, each in seconds.items()}


def spans(n: int, repeat: int) -> None:
    from seqeval.metrics import classification_report

    from structsolve.plugins.chain.metrics import span_f1
    from structsolve.plugins.chain.spans import spans as read
    from structsolve.plugins.chain.spans import tags_from_spans

    truth, guess = chunks()
    words = sum(map(len, truth))
    rows = []
    for name in MARKS:
        compared, wrong = map(sum, zip(*(differences(name, suffix, n) for suffix in (0, 1))))
        target = "IOB2" if name == "conll" else name
        sides = [
            [tags_from_spans(read(tags), len(tags), target) for tags in side]
            for side in (truth, guess)
        ]
        strict = {} if name == "conll" else {"mode": "strict", "scheme": scheme_of(name)}

        def theirs(sides: Any = sides, strict: Any = strict) -> Any:
            return classification_report(*sides, output_dict=True, **strict)

        def ours(sides: Any = sides, name: str = name) -> Any:
            return str(span_f1(*sides, name))

        took = interleaved({"ours": ours, "seqeval": theirs}, repeat)
        ratio = took["seqeval"] / took["ours"]
        equal = f"{compared - wrong} of {compared}"
        rows.append([name, equal, *(f"{s:.3f}" for s in took.values()), f"{ratio:.1f}"])
    print(f"Spans: reports that are equal; CPU seconds of a report of {words} words\n")
    print(table(["scheme", "equal reports", "ours", "seqeval", "seqeval / ours"], rows))
    report = span_f1(truth, guess)
    seconds = median_time(lambda: report.errors(truth), 3)[0]
    print(f"All {len(report.errors())} errors with contexts: {seconds:.3f} s")


def paths(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two tables of four levels, some paths shorter, each with names of its own place."""
    digits = rng.integers(0, [4, 5, 5, 5], (n, 4))
    other = digits.copy()
    for row in np.flatnonzero(rng.random(n) < 0.5):
        level = rng.integers(4)
        other[row, level:] = rng.integers(0, 4, 4 - level)
    tables = []
    for each in (digits, other):
        names = [["".join(map(str, row[: k + 1])) for k in range(4)] for row in each.tolist()]
        made = np.array(names)
        made[rng.random(n) < 0.2, 3] = ""
        tables.append(made)
    return tables[0], tables[1]


def hierarchies(n: int, repeat: int) -> None:
    from hiclass import metrics

    from structsolve.plugins.dag import hierarchical_scores

    truth, guess = paths(n, np.random.default_rng(0))
    peer = {name: getattr(metrics, name) for name in ("precision", "recall", "f1")}

    def theirs() -> Any:
        return {
            average: {name: call(truth, guess, average) for name, call in peer.items()}
            for average in ("micro", "macro")
        }

    took = interleaved(
        {"ours": lambda: hierarchical_scores(truth, guess), "hiclass": theirs}, repeat
    )
    ours, other = hierarchical_scores(truth, guess), theirs()
    rows = [
        [average, *(f"{ours[average][name]:.6f} / {other[average][name]:.6f}" for name in peer)]
        for average in other
    ]
    print(f"\nHierarchies: {n} paths of four levels, ours / HiClass's\n")
    print(table(["average", *peer], rows))
    print(
        f"CPU seconds of all six: ours {took['ours']:.3f}, HiClass {took['hiclass']:.3f}, "
        f"ratio {took['hiclass'] / took['ours']:.1f}"
    )
    for average in other:
        for name in peer:
            assert np.isclose(ours[average][name], other[average][name], rtol=1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sequences", type=int, default=500, help="reports per mode")
    parser.add_argument("--paths", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    enter("seqeval")
    header("reports of spans and hierarchies")
    spans(args.sequences, args.repeat)
    hierarchies(args.paths, args.repeat)


if __name__ == "__main__":
    main()
