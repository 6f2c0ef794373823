"""
An output of your own: three functions
======================================

Any output that you can search for can be learned. Here the output is one interval of a signal. The
package needs only its features, its loss, and a search for the best interval (:doc:`/structures`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import FunctionStructure, StructuredSVM


def features(x, y):
    """Sums over the interval, and its length."""
    start, stop = y
    return np.r_[x[start:stop].sum(axis=0), stop - start]


def loss(truth, answer):
    """1 minus intersection over union."""
    both = max(0, min(truth[1], answer[1]) - max(truth[0], answer[0]))
    either = truth[1] - truth[0] + answer[1] - answer[0] - both
    return 1 - both / either


def oracle(w, x, y=None):
    """The interval of largest score, in training of score plus loss, by trying all intervals."""
    sums = np.r_[0, np.cumsum(x @ w[:-1] + w[-1])]
    start, stop = np.triu_indices(len(x) + 1, 1)
    value = sums[stop] - sums[start]
    if y is not None:
        both = np.maximum(0, np.minimum(stop, y[1]) - np.maximum(start, y[0]))
        value += 1 - both / (stop - start + y[1] - y[0] - both)
    best = value.argmax()
    return int(start[best]), int(stop[best])


rng = np.random.default_rng(0)


def draw():
    """A signal of three channels, two of them informative, and the interval of the event."""
    start, size = rng.integers(0, 25), rng.integers(5, 15)
    x = rng.normal(size=(40, 3))
    x[start : start + size] += [1.2, -1.2, 0]
    return x, (int(start), int(start + size))


X, Y = zip(*[draw() for _ in range(120)])
structure = FunctionStructure(features, oracle, loss)
model = StructuredSVM(structure, alpha=0.01, tol=0.02).fit(X[:60], Y[:60])
guesses = model.predict(X[60:])
overlap = np.mean([1 - loss(a, b) for a, b in zip(Y[60:], guesses)])
print(f"mean overlap: {overlap:.2f}; weights: {model.coef_['weights'].round(2)}")

# %%
figure, axes = plt.subplots(3, 1, figsize=(8, 4.2), layout="constrained", sharex=True)
for ax, x, truth, guess in zip(axes, X[60:], Y[60:], guesses):
    ax.plot(x[:, 0] - x[:, 1], color="#333333", linewidth=1)
    ax.axvspan(truth[0] - 0.5, truth[1] - 0.5, color="#56B4E9", alpha=0.35, label="truth")
    ax.plot([guess[0] - 0.5, guess[1] - 0.5], [-5, -5], color="#D55E00", linewidth=4, label="found")
    ax.spines[["top", "right"]].set_visible(False)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
axes[2].set_xlabel("time")
