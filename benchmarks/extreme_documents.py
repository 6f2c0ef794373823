"""Documents of very many classes, shaped like web directories and generated from a seed.

A document of a class is a bag of words.  Each word is drawn from one of: the language (Zipf over
all words), the words of the class's top category, one of the subjects of its group (a document has
one subject, a class prefers a few; classes have several modes, so class means are not the best
rule), the class's own words, the words of a sibling (which makes siblings similar), or a few rare
words of the document, repeated.  Class sizes follow a power law: most classes have a handful of
documents.  A share of the labels is swapped for a sibling's, because editors disagree.  Values are
log-tf times idf in float32, rows have unit length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

#: Classes, words, training documents, test documents and mean tokens, after MEMOIR's Table 1.
PRESETS = {
    "small": (1000, 30_000, 10_000, 5_000, 80),
    "mid": (4_000, 150_000, 30_000, 20_000, 160),
    "lshtc": (12_294, 347_000, 93_805, 20_000, 160),
    "dmoz": (27_875, 594_000, 381_149, 20_000, 100),
    "odp": (105_033, 423_000, 500_000, 20_000, 60),
}

#: Shares of the words drawn from the language, ..., the document itself, in the order above.
MIX = (0.44, 0.10, 0.22, 0.07, 0.06, 0.11)
SUBJECTS = 16  # of a group
SWAPPED = 0.15  # share of the labels


def zipf(
    rng: np.random.Generator, n: int, size: int, exponent: float, shift: float = 2.0
) -> np.ndarray:
    """Ranks below `n`, with probability ``~ (rank + shift) ** -exponent``, by inversion."""
    a = 1.0 - exponent
    low, high = shift**a, (float(n) + shift) ** a
    ranks = (low + rng.random(size) * (high - low)) ** (1.0 / a) - shift
    return np.minimum(ranks, n - 1).astype(np.int64)


@dataclass(frozen=True)
class Directory:
    """Classes, siblings side by side: the group and the top category of each."""

    group: np.ndarray
    top: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, classes: int) -> Directory:
        """Uneven groups, as in a web directory."""
        group = np.sort(zipf(rng, max(2, classes // 24), classes, 0.6))
        top = np.sort(zipf(rng, 16, group[-1] + 1, 0.5))
        return cls(group, top[group])

    def sibling(self, rng: np.random.Generator, classes: np.ndarray) -> np.ndarray:
        """For each class one at most four places away in its group, maybe itself."""
        near = np.clip(classes + rng.integers(-4, 5, classes.size), 0, len(self.group) - 1)
        return np.where(self.group[near] == self.group[classes], near, classes)


class Language:
    """Words by rank, and the words of topics: most rare, some shared."""

    def __init__(self, rng: np.random.Generator, words: int) -> None:
        self.rng = rng
        self.by_rank = rng.permutation(words)

    def draw(self, size: int, exponent: float) -> np.ndarray:
        """Words of the language."""
        return self.by_rank[zipf(self.rng, len(self.by_rank), size, exponent)]

    def topics(self, count: int, size: int, exponent: float = 0.55) -> np.ndarray:
        """`size` words for each of `count` topics."""
        return self.draw(count * size, exponent).reshape(count, size)


def make_documents(
    classes: int, words: int, docs: int, test: int, tokens: int, seed: int = 0
) -> tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]:
    """Training and test documents: X, y, X_test, y_test; words that no document has are dropped.

    The order of the draws makes the data: the same seed gives the same bits.
    """
    rng = np.random.default_rng(seed)
    language = Language(rng, words)
    directory = Directory.draw(rng, classes)
    taste = rng.dirichlet(np.full(SUBJECTS, 0.25), classes)
    own = language.topics(classes, 40)
    subjects = language.topics((directory.group[-1] + 1) * SUBJECTS, 60)
    tops = language.topics(directory.top[-1] + 1, 1000)
    share = (1.0 + np.arange(classes)) ** -0.75
    sizes = rng.permutation(2 + rng.multinomial(docs - 2 * classes, share / share.sum()))
    y = rng.permutation(np.repeat(np.arange(classes), sizes))
    y = np.concatenate([y, rng.choice(classes, test, p=sizes / sizes.sum())])

    lengths = np.maximum(8, rng.lognormal(np.log(tokens) - 0.32, 0.8, len(y))).astype(np.int64)
    document = np.repeat(np.arange(len(y)), lengths)
    source = rng.choice(len(MIX), document.size, p=MIX)
    subject = (rng.random(len(y))[:, None] > np.cumsum(taste, axis=1)[y]).sum(axis=1)
    subject = directory.group[y] * SUBJECTS + subject.clip(0, SUBJECTS - 1)
    rare = language.topics(len(y), 5, 0.6)
    of = y[document]
    near = directory.sibling(rng, of)
    word = language.draw(document.size, 1.05)
    topics = [
        (tops, directory.top[of]),
        (subjects, subject[document]),
        (own, of),
        (own, near),
        (rare, document),
    ]
    for k, (table, row) in enumerate(topics, 1):
        here = np.flatnonzero(source == k)
        word[here] = table[row[here], zipf(rng, table.shape[1], here.size, 0.9)]
    X = sp.csr_matrix((np.ones(word.size, np.float32), (document, word)), shape=(len(y), words))
    X.sum_duplicates()

    swapped = np.flatnonzero(rng.random(len(y)) < SWAPPED)
    y[swapped] = directory.sibling(rng, y[swapped])
    y = y.astype(np.int32)
    X.data = np.log1p(X.data)
    train, held_out = unit_idf(X[:docs], X[docs:])
    return train, y[:docs], held_out, y[docs:]


def unit_idf(
    X: sp.csr_matrix, X_test: sp.csr_matrix, least: int = 1
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Values times idf, rows of unit length, without columns of less than `least` training rows."""
    df = np.bincount(X.indices, minlength=X.shape[1])
    kept = np.flatnonzero(df >= least)
    idf = np.log((1 + X.shape[0]) / df[kept]).astype(np.float32)
    parts = []
    for part in (X, X_test):
        part = part[:, kept].tocsr()
        part.data *= idf[part.indices]
        norms = np.sqrt(np.asarray(part.multiply(part).sum(axis=1)).ravel())
        part.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(part.indptr)).astype(np.float32)
        part.sort_indices()
        parts.append(part)
    return parts[0], parts[1]
