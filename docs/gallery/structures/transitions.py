"""
What did my chain learn?
========================

Weights are tables with names. The transitions show which digit follows which in strips of digits
that count up.
"""

from matplotlib.figure import Figure

from structsolve import StructuredSVM, make_strips

train, _ = make_strips(n_train=500, n_test=1)
model = StructuredSVM("chain", alpha=0.01, tol=0.01).fit(train.pixels, train.labels)
figure = Figure(figsize=(4.5, 4), layout="constrained")
axes = figure.subplots()
axes.set(xlabel="next digit", ylabel="digit", xticks=range(10), yticks=range(10))
table = model.coef_["transition"]
picture = axes.imshow(table, cmap="PuOr", vmin=-abs(table).max(), vmax=abs(table).max())
figure.colorbar(picture, label="weight")
