"""
Latent segments
===============

There are two kinds of gestures, high then low or low then high, with rests between them. Only the
kinds are labelled. With hidden states, :class:`~structsolve.LatentSVM` finds the segments by itself
(:doc:`/latent`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import LatentSVM, StructuredSVM

rng = np.random.default_rng(0)
PHASES = {"rest": [0.0], "high-low": [1.0, -1.0], "low-high": [-1.0, 1.0]}


def record():
    """A signal of successive gestures with rests; labels are the kinds."""
    x, y = [], []
    gestures = rng.choice(["high-low", "low-high"], 3)
    for kind in ["rest", *[kind for gesture in gestures for kind in (gesture, "rest")]]:
        for level in PHASES[kind]:
            n = rng.integers(3, 7)
            x += (level + 0.5 * rng.normal(size=n)).tolist()
            y += [kind] * n
    return np.column_stack([x, np.abs(x)]), np.array(y)


data = [record() for _ in range(150)]
X, Y = zip(*data)
plain = StructuredSVM("chain", alpha=0.01, tol=0.02).fit(X[:75], Y[:75])
latent = LatentSVM(
    "chain", n_hidden={"rest": 1, "high-low": 2, "low-high": 2}, alpha=0.01, tol=0.02
).fit(X[:75], Y[:75])
accuracy = {"plain": plain.score(X[75:], Y[75:]), "latent": latent.score(X[75:], Y[75:])}

# %%
# Below the signal: labelled kinds, predictions of a chain and with hidden states, hidden states.
i = 76
kinds = list(PHASES)
rows = {
    "truth": [kinds.index(k) for k in Y[i]],
    f"plain, {accuracy['plain']:.0%}": [kinds.index(k) for k in plain.predict([X[i]])[0]],
    f"latent, {accuracy['latent']:.0%}": [kinds.index(k) for k in latent.predict([X[i]])[0]],
    "hidden states": latent.predict_hidden([X[i]])[0],
}
figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 3.8), layout="constrained", sharex=True)
top.plot(X[i][:, 0], color="#333333", marker="o", markersize=3)
top.set_ylabel("signal")
top.spines[["top", "right"]].set_visible(False)
for k, (name, row) in enumerate(rows.items()):
    top_color = "tab10" if name == "hidden states" else "Paired"
    bottom.imshow(
        np.array(row)[None], extent=(-0.5, len(row) - 0.5, k + 0.9, k), aspect="auto",
        cmap=top_color, vmin=0, vmax=9 if name == "hidden states" else 11, interpolation="nearest",
    )  # fmt: skip
bottom.set(ylim=(len(rows), -0.1), yticks=np.arange(len(rows)) + 0.45, xlabel="time")
bottom.set_yticklabels(rows)
