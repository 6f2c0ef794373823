"""What choosing alpha costs for label sets: StructuredSVMCV with micro-F1 against one default fit.

Both with their defaults: five folds, a path over 15 alphas from coarse to fine; then one fit
of all rows with the chosen alpha.  The asked ratio is at most 20.  Seconds are medians of rounds
that take turns, as those of one fit vary by a third.

    STRUCTSOLVE_DATA=... python benchmarks/alpha_search.py --sets yeast
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from typing import Any

from common import Clock, header, table
from datasets import multilabel
from multilabel import micro_f1
from multilabel_defaults import GENERATED, documents

SETS = ("yeast", "333 documents", "bibtex")


def main() -> None:
    from structsolve import StructuredSVM, StructuredSVMCV

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    header("A search over alphas with micro-F1, in default fits")
    warnings.filterwarnings("ignore")
    columns = ["set", "one fit, CPU s", "micro-F1, test", "search, CPU s", "alphas"]
    columns += ["in fits", "alpha by default", "alpha chosen", "micro-F1, test"]
    rows = []
    for name in args.sets:
        X, Y, Xt, Yt = documents(*GENERATED[name]) if name in GENERATED else multilabel(name)
        StructuredSVM("multilabel").fit(X[:50], Y[:50])  # imports
        one = StructuredSVM("multilabel")
        chosen = StructuredSVMCV("multilabel", scoring="micro-f1")
        spent: dict[Any, list[float]] = {one: [], chosen: []}
        for _ in range(args.rounds):
            for model, seconds in spent.items():
                with Clock() as clock:
                    model.fit(X, Y)
                seconds.append(clock.cpu)
        fit, search = map(statistics.median, spent.values())
        row: list[object] = [name, f"{fit:.3f}", f"{micro_f1(Yt, one.predict(Xt)):.4f}"]
        row += [f"{search:.2f}", len(chosen.alphas_), f"{search / fit:.1f}"]
        row += [one.alpha_, chosen.alpha_, f"{micro_f1(Yt, chosen.predict(Xt)):.4f}"]
        rows.append(row)
    print(table(columns, rows))


if __name__ == "__main__":
    main()
