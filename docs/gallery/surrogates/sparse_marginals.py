"""
Marginals that are mostly zero: SparseMAP
=========================================

The marginals of a CRF are never zero. SparseMAP's are zero for most labels and leave a short list
of candidates (:doc:`/probabilities`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM, make_strips

train, test = make_strips(n_train=150, n_test=60)
projections = {"crf": "entropy", "sparsemap": "euclidean"}
chances = {}
for surrogate, projection in projections.items():
    model = StructuredSVM("chain", surrogate=surrogate, alpha=0.01, tol=0.05)
    model.fit(train.pixels, train.labels)
    chances[surrogate] = model.predict_marginals(test.pixels, projection=projection)
doubt = [(np.sort(table, axis=1)[:, -1] < 0.7).mean() for table in chances["sparsemap"]]
i = int(np.argmax(doubt))

# %%
# The marginals of each place of one strip. Crosses mark the true digits, grey is exactly zero.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained", sharey=True)
for ax, (name, tables) in zip(axes, chances.items()):
    table = np.ma.masked_equal(tables[i].T, 0)
    colors = plt.get_cmap("Blues").with_extremes(bad="#dddddd")
    image = ax.imshow(table, cmap=colors, vmin=0, vmax=1, aspect="auto")
    ax.plot(range(len(test.labels[i])), test.labels[i], "x", color="#D55E00")
    zero = np.mean([(t == 0).mean() for t in tables])
    ax.set(title=f"{name}: {zero:.0%} zero", xlabel="place", yticks=range(10))
axes[0].set_ylabel("digit")
figure.colorbar(image, ax=axes, label="marginal")
