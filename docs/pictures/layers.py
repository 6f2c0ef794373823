"""The five layers of a training step, and what goes from each to the next.

Run from anywhere; writes `layers.png` beside itself, where it is kept.
"""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

LAYERS = [
    ("examples", "X and y, packed once", "offsets, features,\nlabels"),
    ("potentials", "weights to part scores,\nand back", "theta = Φ w"),
    ("structure", "oracle, projection, loss:\na plugin", "label, value,\nbound"),
    ("surrogates", "one example's scores\nto a cut", "cut (p, b),\nbound"),
    ("solvers", "cuts to weights,\nprimal, dual, gap", "w"),
]

figure = Figure(figsize=(10, 2.6), layout="constrained")
axes = figure.add_subplot()
axes.set(xlim=(-0.1, 10.1), ylim=(-1.25, 1.2))
axes.axis("off")
for k, (name, what, gives) in enumerate(LAYERS):
    left = 2.05 * k
    axes.add_patch(
        FancyBboxPatch(
            (left, -0.4),
            1.3,
            1.2,
            boxstyle="round,pad=0.05",
            facecolor="#e8f0fa",
            edgecolor="#3b6ea5",
        )
    )
    axes.text(left + 0.65, 0.55, name, ha="center", va="center", weight="bold", size=10)
    axes.text(left + 0.65, 0.02, what, ha="center", va="center", size=7)
    if k < len(LAYERS) - 1:
        axes.annotate("", (left + 1.98, 0.2), (left + 1.38, 0.2), arrowprops={"arrowstyle": "->"})
        axes.text(left + 1.68, 0.85, gives, ha="center", va="bottom", size=7)
axes.add_patch(
    FancyArrowPatch(
        (8.85, -0.5),
        (2.7, -0.5),
        connectionstyle="arc3,rad=-0.12",
        arrowstyle="->",
        mutation_scale=10,
    )
)
axes.text(5.8, -1.15, "new weights w; the cut's parts p go back through Φ'", ha="center", size=8)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=120)
