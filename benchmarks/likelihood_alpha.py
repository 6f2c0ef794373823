"""Random fields at multiples of the default alpha: test error and training seconds.

Each set is trained with ``surrogate="crf"`` at the constant that ``alpha="auto"`` takes, and at
multiples of it.  Errors are of nodes, on test data: they show how far the rule is from the best
constant, and choose none.

    STRUCTSOLVE_DATA=... python benchmarks/likelihood_alpha.py [--only letters]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

from common import Clock, header, structsolve_or_none, table
from datasets import conll2000, mc_letter, ocr_split
from likelihood import Rows, generated, pixels

SHARES = (0.01, 0.1, 1 / 3, 1.0, 3.0)


def words() -> Rows:
    train, test = ocr_split(0, "one")
    return train.x_list("packed"), train.y_list(), test.x_list("packed"), test.y_list()


def chunks(n: int) -> Callable[[], Rows]:
    def make() -> Rows:
        from structsolve import SequenceVectorizer
        from structsolve.plugins.chain.token_features import conll_features

        (train, Y), (test, Yt) = conll2000("train"), conll2000("test")
        vectorizer = SequenceVectorizer()
        X = vectorizer.fit_transform([conll_features(one) for one in train[:n]])
        return X, Y[:n], vectorizer.transform([conll_features(one) for one in test]), Yt

    return make


SETS: dict[str, tuple[str, Callable[[], Rows]]] = {
    "letters": ("multiclass", mc_letter),
    "handwritten letters, a fold": ("multiclass", pixels),
    "generated, 2000 rows": ("multiclass", generated(2000, 20, 5)),
    "generated, 300 rows": ("multiclass", generated(300, 100, 4)),
    "handwritten words, a fold": ("chain", words),
    "chunks, 500 sentences": ("chain", chunks(500)),
    "chunks, 2000 sentences": ("chain", chunks(2000)),
}


def errors(structure: str, load: Callable[[], Rows]) -> list[Any]:
    """The default alpha; test error and CPU seconds at each multiple of it."""
    from structsolve import StructuredSVM

    X, y, Xt, yt = load()
    alpha = StructuredSVM(structure, surrogate="crf", max_iter=1).fit(X, y).alpha_
    cells = []
    for share in SHARES:
        with Clock() as clock:
            model = StructuredSVM(structure, surrogate="crf", alpha=share * alpha).fit(X, y)
        cells.append(f"{1 - model.score(Xt, yt):.4f} ({clock.cpu:.1f} s)")
    return [f"{alpha:.2g}", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(SETS), default=list(SETS))
    args = parser.parse_args()
    header("Random fields at multiples of the default alpha: test error, CPU s of a fit")
    if structsolve_or_none() is None:
        return
    warnings.simplefilter("ignore")
    rows = [[name, *errors(*SETS[name])] for name in args.only]
    print(table(["set", "alpha", *(f"x {share:.2g}" for share in SHARES)], rows))


if __name__ == "__main__":
    main()
