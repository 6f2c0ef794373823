"""Draw choosing.png, the chart of docs/choosing.rst: `python docs/pictures/choosing.py`."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

INK, LINE = "#333333", "#bbbbbb"
# For each question its color and its answers: (case, choice).
QUESTIONS = {
    "What is in y?": (
        "#0072b2",
        [
            ("one class per row", '"multiclass"'),
            ("… of many thousands", "ExtremeSVM"),
            ("… with an order", '"ordinal"'),
            ("… under a hierarchy", "HierarchicalSVM"),
            ("a set of labels", '"multilabel"'),
            ("… that include others", '"dag"'),
            ("labels of a sequence", '"chain"'),
            ("… of its spans", '"semi-markov"'),
            ("… of a tree", '"tree"'),
            ("… of a picture", '"grid"'),
            ("… of a graph", '"mrf"'),
            ("… partly unknown", "LatentSVM"),
            ("heads of words", '"dependency"'),
            ("trees of phrases", '"cky"'),
            ("ranks, partners", '"permutation"'),
            ("aligned sequences", '"alignment"'),
            ("paths; flows", '"path", "flow"'),
            ("anything with your own search", '"functions"'),
        ],
    ),
    "Which surrogate loss?": (
        "#d55e00",
        [
            ("labels: start here", '"margin"'),
            ("… noisy, or near ties", '"max-min"'),
            ("… scores from a network", '"probloss"'),
            ("… losses of different size", '"beta", "slack"'),
            ("F1 of label sets", '"micro-f1"'),
            ("probabilities, samples", '"crf"'),
            ("… with sparse marginals", '"sparsemap"'),
            ("least expected loss", "Conditional…"),
        ],
    ),
    "Which solver?": (
        "#009e73",
        [
            ("almost always", '"bcfw"'),
            ("crf: the default", '"gbcfw"'),
            ("… with sparse weights", '"lbfgs"'),
            ("sparsemap, crf", '"sdca"'),
            ("a good model early", '"sgd"'),
            ("… rare features, no bound", '"perceptron"'),
            ("few weights, threads", '"cutting-plane"'),
            ("many machines", "DaskStructuredSVM"),
        ],
    ),
}


def draw():
    """Return the figure."""
    rows = max(len(answers) for _, answers in QUESTIONS.values())
    figure = Figure(figsize=(11, 0.33 * (rows + 1.5)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 33)
    axes.set_ylim(-rows - 0.8, 0.7)
    axes.axis("off")
    for column, (question, (color, answers)) in enumerate(QUESTIONS.items()):
        left = 0.3 + 11 * column
        heading(axes, left, 0, f"{column + 1}. {question}", color)
        axes.plot([left + 0.2, left + 0.2], [-0.55, -len(answers)], color=LINE, lw=1)
        for row, (when, name) in enumerate(answers, 1):
            inset = 0.5 if when.startswith("…") else 0.0
            axes.plot([left + 0.2, left + 0.5 + inset], [-row, -row], color=LINE, lw=1)
            axes.text(left + 0.6 + inset, -row, when, size=9, color=INK, va="center")
            where = {"ha": "center", "va": "center", "family": "monospace"}
            axes.text(left + 8.4, -row, name, size=9, color=INK, **where)
            style = {"facecolor": color, "alpha": 0.14, "edgecolor": "none"}
            box = FancyBboxPatch((left + 6.4, -row - 0.3), 4, 0.6, "round,pad=0.05", **style)
            axes.add_patch(box)
    heading(axes, 22.3, -9.6, "Then: how much regularisation?", "#cc79a7")
    advice = "Choose alpha by StructuredSVMCV or a path:\ntry values a factor of ten apart"
    axes.text(22.9, -11, advice, size=9, color=INK, va="center")
    return figure


def heading(axes, left, height, text, color):
    """Write a question in its color."""
    axes.text(left, height, text, weight="bold", size=12, color=color, va="center")


if __name__ == "__main__":
    draw().savefig(Path(__file__).with_suffix(".png"), dpi=82)
