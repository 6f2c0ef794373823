"""Latency of one prediction: a model loaded from a file gets one example at a time.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/latency.py

The script uses one thread.  Each call gets another example; both sides take turns, also at being
first, and the table has the median and the 99th percentile of wall time in µs.  Sentences of
CoNLL-2000 go from named features to labels through a Pipeline, as chunks with lists of strings and
as names (runs of proper nouns) with dicts; python-crfsuite's tagger gets the same features.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from common import header, quiet, table
from datasets import conll2000

import structsolve
from structsolve import ExtremeSVM, HierarchicalSVM, SequenceVectorizer, StructuredSVM
from structsolve.plugins.chain.token_features import conll_features

Call = Callable[[Any], Any]
# Name, examples, our call, the peer's name and call, target as a multiple of the peer's median.
Case = tuple[str, Sequence[Any], Call, str, Call, float | None]


def latencies(examples: Sequence[Any], calls: Sequence[Call], rounds: int) -> np.ndarray:
    """Wall seconds of each call on each example, of shape (calls, rounds * examples)."""
    for example in examples[:20]:
        for call in calls:
            call(example)
    spent = np.empty((len(calls), rounds, len(examples)))
    numbers = range(len(calls))
    for r in range(rounds):
        # The first call on an example finds it in no cache.
        order = numbers if r % 2 else numbers[::-1]
        for i, example in enumerate(examples):
            for c in order:
                begun = time.perf_counter()
                calls[c](example)
                spent[c, r, i] = time.perf_counter() - begun
    return spent.reshape(len(calls), -1)


def saved(model: Any, folder: Path) -> Any:
    """The model, saved to a file and loaded."""
    if hasattr(model, "save"):
        model.save(folder / "model.structsolve")
        return structsolve.load(folder / "model.structsolve")
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def names(sentence: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Features for tagging names: words, cases, affixes, and those of both neighbours."""
    words = [word for word, _ in sentence]

    def about(word: str) -> dict[str, Any]:
        return {
            "lower": word.lower(),
            "upper": word.isupper(),
            "title": word.istitle(),
            "digit": word.isdigit(),
        }

    items = []
    for v, word in enumerate(words):
        item: dict[str, Any] = {"bias": 1.0, "suffix3": word[-3:], "suffix2": word[-2:]}
        item |= about(word)
        for place, step in (("-1:", v - 1), ("+1:", v + 1)):
            if 0 <= step < len(words):
                item |= {place + name: value for name, value in about(words[step]).items()}
            else:
                item["BOS" if step < 0 else "EOS"] = True
        items.append(item)
    return items


def name_tags(sentence: list[tuple[str, str]]) -> list[str]:
    """BIO tags of runs of proper nouns."""
    inside = [False, *(tag.startswith("NNP") for _, tag in sentence)]
    return ["I-NAME" if a and b else "B-NAME" if b else "O" for a, b in zip(inside, inside[1:])]


def tagging(folder: Path, n: int) -> Iterator[Case]:
    import pycrfsuite
    from sklearn.pipeline import make_pipeline

    (train, chunks), (test, _) = conll2000("train"), conll2000("test")
    train, chunks, test = train[:n], chunks[:n], test[:300]
    tasks = (
        ("chunks of a sentence, lists", conll_features, chunks),
        ("names of a sentence, dicts", names, [name_tags(sentence) for sentence in train]),
    )
    for title, features, labels in tasks:
        items = [features(sentence) for sentence in train]
        pipe = make_pipeline(SequenceVectorizer(), StructuredSVM("chain", max_iter=5))
        pipe = saved(pipe.fit(items, labels), folder)
        trainer = pycrfsuite.Trainer("l2sgd", {"max_iterations": 5}, verbose=False)
        for item, sequence in zip(items, labels):
            trainer.append(item, sequence)
        trainer.train(str(folder / "model.crfsuite"))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(folder / "model.crfsuite"))
        tests = [features(sentence) for sentence in test]
        size = f"{title}, {pipe[-1].flat_weights().size:,} weights"
        yield size, tests, lambda x, p=pipe: p.predict([x]), "Tagger.tag", tagger.tag, 2.0
        rows = pipe[0].transform(tests)
        model = pipe[-1]
        yield (
            f"{title}: three best beside predict",
            rows,
            lambda x, m=model: m.predict_kbest([x], k=3),
            "predict",
            lambda x, m=model: m.predict([x]),
            3.0,
        )
    crf = StructuredSVM("chain", surrogate="crf", max_iter=3).fit(
        pipe[0].transform(items[:300]), labels[:300]
    )
    crf = saved(crf, folder)
    yield (
        "names: marginals beside predict",
        rows,
        lambda x: crf.predict_marginals([x]),
        "predict",
        lambda x: crf.predict([x]),
        2.0,
    )


def sizes(folder: Path, _: int) -> Iterator[Case]:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    models = {}
    X = [sp.random(20, 300, 0.05, "csr", random_state=rng) for _ in range(100)]
    Y = [rng.integers(0, 10, 20) for _ in X]

    def spread(width: int) -> list[sp.csr_matrix]:
        """The same numbers in columns all over the width."""
        return [
            sp.csr_matrix((x.data, x.indices * (width // 300), x.indptr), (20, width)) for x in X
        ]

    for width in (300, 300_000):
        models[width] = saved(StructuredSVM("chain", max_iter=3).fit(spread(width), Y), folder)

    def ask(width: int) -> Call:
        examples = spread(width)
        return lambda i: models[width].predict([examples[i]])

    title = "20 sparse rows, 3 million weights"
    yield title, range(100), ask(300_000), "3 thousand weights", ask(300), 1.1


def dense(folder: Path, _: int) -> Iterator[Case]:
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 20)) for _ in range(50)]
    Y = [rng.integers(0, 5, 8) for _ in X]
    trees = [(x, [-1, 0, 0, 1, 1, 2, 2, 3]) for x in X]
    graphs = [(x, [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [6, 7]]) for x in X]
    rows, classes = np.vstack(X), np.concatenate(Y)
    theirs = LinearSVC().fit(rows, classes)
    for title, structure, inputs, labels, asked in (
        ("a dense row, 5 classes", "multiclass", rows, classes, 1.0),
        ("a dense sequence of 8", "chain", X, Y, 0.1),
        ("a tree of 8", "tree", trees, Y, None),
        ("a graph of 8 with a cycle", "mrf", graphs, Y, 0.3),
    ):
        model = saved(StructuredSVM(structure, max_iter=20).fit(inputs, labels), folder)
        yield (
            title,
            range(50),
            lambda i, m=model, x=inputs: m.predict(x[i : i + 1]),
            "LinearSVC, a row",
            lambda i: theirs.predict(rows[i : i + 1]),
            asked,
        )


def users(folder: Path, _: int) -> Iterator[Case]:
    """Structures beside libraries in use today."""
    import maxflow
    import networkx as nx
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    from structsolve.plugins.mrf import decode

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    tree = nx.DiGraph([(f"n{(k - 1) // 3}", f"n{k}") for k in range(1, 40)])
    leaves = [n for n in tree if tree.out_degree(n) == 0]
    y = np.array(leaves)[(X @ rng.normal(size=(30, len(leaves)))).argmax(axis=1)]
    model = saved(HierarchicalSVM(tree, max_iter=5).fit(X, y), folder)
    above = {leaf: {leaf, *nx.ancestors(tree, leaf)} for leaf in leaves}
    nodes = sorted(tree)
    marked = np.array([[node in above[leaf] for node in nodes] for leaf in y]).astype(int)
    each = OneVsRestClassifier(LinearSVC()).fit(X, marked[:, marked.min(0) < marked.max(0)])
    yield (
        "a leaf of 40 nodes",
        range(200),
        lambda i: model.predict(X[i : i + 1]),
        "LinearSVC per node",
        lambda i: each.predict(X[i : i + 1]),
        None,
    )
    scores = X @ rng.normal(size=(30, 6))
    ranks = scores.argsort(axis=1).argsort(axis=1)
    ranker = saved(StructuredSVM("permutation", max_iter=5).fit(X, ranks), folder)
    pairs = [
        LogisticRegression().fit(X, ranks[:, a] < ranks[:, b]) for a in range(6) for b in range(a)
    ]
    yield (
        "a ranking of 6",
        range(200),
        lambda i: ranker.predict(X[i : i + 1]),
        "LogisticRegression per pair",
        lambda i: [pair.predict(X[i : i + 1]) for pair in pairs],
        None,
    )
    pictures = [rng.normal(size=(32, 32, 2)) for _ in range(50)]

    def cut(picture: np.ndarray) -> np.ndarray:
        graph = maxflow.Graph[float]()
        nodes = graph.add_grid_nodes((32, 32))
        graph.add_grid_edges(nodes, 0.5)
        graph.add_grid_tedges(nodes, picture[..., 1], picture[..., 0])
        graph.maxflow()
        return graph.get_grid_segments(nodes)

    ids = np.arange(1024).reshape(32, 32)
    edges = np.r_[
        np.c_[ids[:, :-1].ravel(), ids[:, 1:].ravel()], np.c_[ids[:-1].ravel(), ids[1:].ravel()]
    ]
    potts = 0.5 * np.eye(2)
    yield (
        "a picture, 32 x 32, two labels",
        pictures,
        lambda x: decode(x.reshape(1024, 2), edges, potts),
        "PyMaxflow",
        cut,
        None,
    )


def extreme(folder: Path, _: int) -> Iterator[Case]:
    import omikuji
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    classes = 2000
    centres = sp.random(classes, 5000, 0.004, "csr", random_state=rng)
    y = np.r_[np.arange(classes), rng.integers(0, classes, 6000)]
    X = (centres[y] + sp.random(len(y), 5000, 0.002, "csr", random_state=rng)).tocsr()
    model = saved(ExtremeSVM().fit(X, y), folder)
    lines = [f"{X.shape[0]} {X.shape[1]} {classes}"]
    for row, label in zip(X, y):
        lines.append(f"{label} " + " ".join(f"{j}:{v:.6g}" for j, v in zip(row.indices, row.data)))
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    with quiet():
        theirs = omikuji.Model.train_on_data(str(folder / "train.txt"))
        theirs.save(str(folder / "omikuji"))
        theirs = omikuji.Model.load(str(folder / "omikuji"))
    rows = [X[i] for i in range(200)]
    pairs = [list(zip(row.indices.tolist(), row.data.tolist())) for row in rows]
    yield (
        "a sparse row, 2000 classes",
        range(200),
        lambda i: model.predict(rows[i]),
        "omikuji, three trees",
        lambda i: theirs.predict(pairs[i], top_k=1),
        0.1,
    )


PARTS = {"tagging": tagging, "sizes": sizes, "dense": dense, "users": users, "extreme": extreme}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=6, help="passes over the examples")
    parser.add_argument("--sentences", type=int, default=2000, help="to train taggers on")
    args = parser.parse_args()
    header("Latency of one example, µs")
    warnings.simplefilter("ignore")  # short fits
    lines = []
    for part in args.only:
        with tempfile.TemporaryDirectory() as folder:
            for title, examples, ours, peer, theirs, asked in PARTS[part](
                Path(folder), args.sentences
            ):
                spent = 1e6 * np.percentile(
                    latencies(examples, (ours, theirs), args.rounds), [50, 99], axis=1
                )
                (mine, other), (mine99, other99) = spent
                cells = [f"{x:.0f}" for x in (mine, mine99, other, other99)]
                ratio = f"{mine / other:.2f}"
                lines.append([title, *cells[:2], peer, *cells[2:], ratio, asked])
    columns = ["example", "p50", "p99", "peer", "its p50", "its p99", "ours / theirs", "target"]
    print(table(columns, lines))


if __name__ == "__main__":
    main()
