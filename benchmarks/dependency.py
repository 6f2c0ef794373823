"""Dependency parsing of English: attachment and speed of first-order parsers, dep-ud-english-ewt.

Training sentences have at most 40 words, with hashed features of words and gold tags.  One parser
predicts all trees with one child of the root, the other projective trees (it trains on the
projective trees closest to the true ones).  Unlabelled attachment score (UAS) is on the development
and the test set, with punctuation and all lengths.  Each alpha has a row; none is chosen.  ProbLoss
is compared with the margin, both by SGD, because BCFW takes only surrogates affine in the margin.

    STRUCTSOLVE_DATA=... python benchmarks/dependency.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from ours import over_hull

LONGEST = 40


def read(folder: Path, part: str) -> tuple[list[Any], list[np.ndarray]]:
    """Sentences and heads of a part of the treebank."""
    from structsolve.plugins.dependency.conllu import read_conllu

    sentences, heads = read_conllu(folder / "dep-ud-english-ewt" / f"en_ewt-ud-{part}.conllu.gz")
    assert heads is not None
    return sentences, heads


def attachment(guess: list[np.ndarray], truth: list[np.ndarray]) -> float:
    """Share of words with the right head, in percent."""
    right = sum(int((a == b).sum()) for a, b in zip(guess, truth, strict=True))
    return 100 * right / sum(map(len, truth))


def decoders(sizes: np.ndarray, sentences: int = 400) -> list[tuple[Any, ...]]:
    """Speed of the oracles and projections on random scores, sentences of given lengths."""
    from structsolve import get_structure
    from structsolve.lp.ask import ask_oracle
    from structsolve.plugins.dependency import Arcs, DependencyStructure
    from structsolve.structure import calls
    from structsolve.structure.ask import ask_projection, make_layout

    assert get_structure("dependency")
    rows = []
    rng = np.random.default_rng(0)
    picked = rng.choice(sizes, sentences)
    thetas = [rng.normal(size=n * n) * 3 for n in picked]
    arcs = Arcs(np.zeros((int((picked**2).sum()), 1), dtype=np.float32), picked)
    for projective in (False, True):
        for single in (False, True):
            space, _ = DependencyStructure(projective, single).make_space(arcs, None)
            layout = make_layout(space, space.pack(arcs))
            oracle = ask_oracle(space)(layout)
            projection = ask_projection(space, "entropy")(layout)
            row: list[Any] = ["projective" if projective else "all", "one" if single else "any"]
            for call in (
                lambda i, theta, o=oracle: calls.argmax(o, i, theta),
                lambda i, theta, p=projection: calls.project(p, i, theta),
            ):
                with Clock() as clock:
                    for i, theta in enumerate(thetas):
                        call(i, theta)
                row.append(f"{sentences / clock.cpu:.0f}")
            rows.append(tuple(row))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2000 training sentences")
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--bits", type=int, default=22)
    parser.add_argument("--alphas", type=float, nargs="+", default=[1e-3, 3e-3, 3e-4])
    sgd = [2e-2, 1e-2, 3e-3, 1e-3, 3e-4]
    parser.add_argument("--sgd-alphas", type=float, nargs="+", default=sgd)
    args = parser.parse_args()
    header("Dependency parsing")
    if structsolve_or_none() is None:
        return
    from structsolve import StructuredSVM
    from structsolve.plugins.dependency import ArcFeaturizer, DependencyStructure, projectivize

    warnings.simplefilter("ignore")
    folder = Path(os.environ["STRUCTSOLVE_DATA"])
    with Clock() as clock:
        parts = {part: read(folder, part) for part in ("train", "dev", "test")}
    words = sum(len(s) for sentences, _ in parts.values() for s in sentences)
    print(f"reading: {words / clock.cpu:.0f} words/s of CPU\n")
    kept = [i for i, s in enumerate(parts["train"][0]) if len(s) <= LONGEST]
    kept = kept[:2000] if args.quick else kept
    sentences = [parts["train"][0][i] for i in kept]
    heads = [parts["train"][1][i] for i in kept]
    featurizer = ArcFeaturizer(n_bits=args.bits).fit(sentences)
    with Clock() as clock:
        X = featurizer.transform(sentences)
    arcs, columns = X.features.shape
    print(
        f"{len(sentences)} sentences, {arcs} arcs, {X.features.nnz / arcs:.1f} of {columns} "
        f"features each; features: {len(sentences) / clock.cpu:.0f} sentences/s of CPU\n"
    )
    held = {part: featurizer.transform(parts[part][0]) for part in ("dev", "test")}
    closest = [projectivize(y, single_root=True) for y in heads]
    settings = [(False, "margin", "bcfw", alpha) for alpha in args.alphas] + [
        (True, "margin", "bcfw", args.alphas[0]),
    ]
    for surrogate in ("margin", "probloss"):
        settings += [(False, surrogate, "sgd", alpha) for alpha in args.sgd_alphas]
    rows = []
    for projective, surrogate, solver, alpha in settings:
        model = StructuredSVM(
            DependencyStructure(projective, True),
            surrogate=over_hull(surrogate),
            solver=solver,
            alpha=alpha,
            max_iter=args.passes,
            random_state=0,
        )
        with Clock() as clock:
            model.fit(X, closest if projective else heads)
        speed = len(model.history_) * len(sentences) / clock.cpu
        scores = []
        for part in ("dev", "test"):
            with Clock() as clock:
                guess = model.predict(held[part])
            scores.append(f"{attachment(guess, parts[part][1]):.2f}")
        gap = model.history_[-1]["gap"]
        rows.append(
            (
                "projective" if projective else "all",
                surrogate,
                solver,
                f"{alpha:g}",
                *scores,
                "" if gap is None else f"{gap / model.history_[-1]['primal']:.3f}",
                f"{speed:.0f}",
                f"{len(guess) / clock.cpu:.0f}",
            )
        )
        print(*rows[-1], flush=True)
    print()
    names = ("trees", "surrogate", "solver", "alpha", "UAS dev", "UAS test", "relative gap")
    print(table((*names, "train sent/s", "parse sent/s"), rows))
    print("\nOracles and marginals alone, random scores, lengths of the test set:\n")
    sizes = np.array([len(s) for s in parts["test"][0]])
    print(table(("trees", "roots", "best tree/s", "marginals/s"), decoders(sizes)))


if __name__ == "__main__":
    main()
