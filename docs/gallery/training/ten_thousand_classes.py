"""
Ten thousand classes
====================

The data have ten thousand classes with a few rows each, and a few words per row.
:class:`~structsolve.ExtremeSVM` trains only on the strongest rivals of each row and stores only
non-zero weights (:doc:`/extreme`).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from structsolve import ExtremeSVM

rng = np.random.default_rng(0)
CLASSES, WORDS, OWN, ALL = 10_000, 12_000, 6, 4
topic = rng.integers(0, WORDS, (CLASSES, 8))  # words of each class; other classes have them too


def draw(n):
    """Rows of unit length, with words of the class and random words."""
    y = np.r_[np.arange(CLASSES), rng.integers(0, CLASSES, n)][-n:]
    columns = [topic[y[:, None], rng.integers(0, 8, (n, OWN))], rng.integers(0, WORDS, (n, ALL))]
    indices, indptr = np.hstack(columns).ravel(), np.arange(0, (OWN + ALL) * n + 1, OWN + ALL)
    X = sparse.csr_matrix((np.ones(indices.size, np.float32), indices, indptr), (n, WORDS))
    X.sum_duplicates()
    return X, y


(X, y), (X_test, y_test) = draw(40_000), draw(3000)
model = ExtremeSVM(solver="one-vs-some").fit(X, y)
labels, _ = model.predict_topk(X_test, k=5)
for k in (1, 5):
    print(f"among the {k} best: {(labels[:, :k] == y_test[:, None]).any(axis=1).mean():.1%}")

# %%
# How the error depends on the number of training rows of the class.
rows, right = np.bincount(y, minlength=CLASSES)[y_test], labels[:, 0] == y_test
few = [right[rows == k].mean() for k in range(1, 9)]
figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
axes.bar(range(1, 9), few, color="#0072B2")
axes.set(xlabel="training rows of the class", ylabel="share of its rows that are right")
axes.spines[["top", "right"]].set_visible(False)
