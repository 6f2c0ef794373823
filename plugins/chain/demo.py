# structsolve demo: read strips of real digit images, with and without structure.
"""A numbering machine prints 3 4 5 7 7 8: it counts, and sometimes skips a number or sticks.

Each number is a scanned handwritten digit that ships with scikit-learn, spoilt by noise and a blot.
A classifier of single digits must guess; a chain also learns which digit follows which.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import structsolve
from structsolve.cli import messages
from structsolve.evaluation.plotting import plot_convergence, plot_sequences
from structsolve.utils.params import check_count

#: Probabilities that the machine sticks, counts, and skips a number.
STEPS = (0.1, 0.8, 0.1)


@dataclass
class Strips:
    """Sequences of spoilt digit images.

    Parameters
    ----------
    images : list of ndarray of shape (length, 8, 8)
        Grey values from 0 to 1.
    labels : list of ndarray of int
        The digits.
    """

    images: list[np.ndarray]
    labels: list[np.ndarray]

    @property
    def pixels(self) -> list[np.ndarray]:
        """The images of each strip as rows of 64 features."""
        return [strip.reshape(len(strip), -1) for strip in self.images]


def make_strips(n_train: int, n_test: int, seed: int = 0) -> tuple[Strips, Strips]:
    """Make strips from scikit-learn's digits; no image is in both training and test.

    Parameters
    ----------
    n_train, n_test : int
        Number of strips, at least 1.
    seed : int, default=0

    Returns
    -------
    train, test : Strips

    Raises
    ------
    ValueError
        For other numbers of strips.

    Examples
    --------
    >>> train, test = make_strips(3, 2)
    >>> len(train.labels), train.images[0].shape[1:], train.pixels[0].shape[1]
    (3, (8, 8), 64)
    """
    from sklearn.datasets import load_digits  # heavy

    for name, n in (("n_train", n_train), ("n_test", n_test)):
        check_count(name, n)
    digits = load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits.target))
    cut = 2 * len(order) // 3
    return tuple(  # type: ignore[return-value]
        _print_strips(digits.images[part] / 16.0, digits.target[part], n, rng)
        for part, n in ((order[:cut], n_train), (order[cut:], n_test))
    )


def _print_strips(images: Any, target: Any, n: int, rng: np.random.Generator) -> Strips:
    by_digit = [images[target == digit] for digit in range(10)]
    strips = Strips([], [])
    for length in rng.integers(5, 11, n):
        steps = rng.choice(3, length, p=STEPS)
        labels = (rng.integers(10) + steps.cumsum()) % 10
        strip = np.stack([by_digit[k][rng.integers(len(by_digit[k]))] for k in labels])
        strip += rng.normal(0.0, 0.2, strip.shape)
        for image, (row, column) in zip(strip, rng.integers(0, 5, (length, 2)), strict=True):
            image[row : row + 4, column : column + 4] = 0.0
        strips.images.append(strip.clip(0.0, 1.0))
        strips.labels.append(labels)
    return strips


def run_demo(output: str = "structsolve-demo", seed: int = 0, quick: bool = False) -> list[dict]:
    """Train the models, print the comparison, and save a model and pictures to `output`.

    Parameters
    ----------
    output : str
        A folder, created if missing.
    seed : int, default=0
    quick : bool, default=False
        Less data.

    Returns
    -------
    list of dict
        One row of the table per model.
    """
    from sklearn.svm import LinearSVC  # heavy

    os.makedirs(output, exist_ok=True)
    train, test = make_strips(*((300, 150) if quick else (1500, 600)), seed=seed)
    n_images = sum(map(len, train.labels))
    print(
        f"{len(train.labels)} training strips ({n_images} images), {len(test.labels)} test strips, "
        "of real digits with noise and blots; no image is in both\n",
        flush=True,
        file=messages.out(),
    )
    flat, flat_labels = np.concatenate(train.pixels), np.concatenate(train.labels)
    options: dict[str, Any] = {
        "alpha": 1e-3,
        "tol": 1e-2,
        "max_iter": 200,
        "random_state": seed,
        "verbose": 1,
    }
    rows, guesses, histories, models = [], {}, {}, {}

    def compare(name: str, model: Any, X: Any, y: Any) -> None:
        print(f"training {name}", flush=True, file=messages.out())
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        if X is flat:
            guess = [model.predict(pixels) for pixels in test.pixels]
        else:
            guess = [np.asarray(labels) for labels in model.predict(test.pixels)]
        wrong = [np.asarray(a) != b for a, b in zip(guess, test.labels, strict=True)]
        history = getattr(model, "history_", None)
        row = {
            "model": name,
            "letter error": np.concatenate(wrong).mean(),
            "sequence error": np.mean([one.any() for one in wrong]),
            "seconds": seconds,
        }
        if history:
            row |= {key: history[-1][key] for key in ("primal", "dual")}
            row["gap"] = messages.relative_gap(history[-1])
            histories[name] = history
        rows.append(row)
        guesses[name], models[name] = guess, model

    svc = LinearSVC(C=1.0 / (options["alpha"] * len(flat)), random_state=seed)
    compare("LinearSVC (scikit-learn)", svc, flat, flat_labels)
    compare("multiclass", structsolve.StructuredSVM("multiclass", **options), flat, flat_labels)
    chain = structsolve.StructuredSVM("chain", **options)
    compare("chain", chain, train.pixels, train.labels)

    print("\n" + format_table(rows), file=messages.out())
    path = os.path.join(output, "digits.structsolve")
    chain.metadata_ = {"data": "structsolve demo", "seed": seed}
    chain.save(path)
    again = structsolve.load(path).predict(test.pixels)
    same = all(map(np.array_equal, again, guesses["chain"]))
    if not same:
        raise RuntimeError(f"{path}: the loaded model predicts differently from the saved model")
    print(f"\nmodel     {path} (loaded again: the same predictions)", file=messages.out())
    _draw(output, histories, test, guesses, options["tol"])
    return rows


def _draw(output: str, histories: Any, test: Strips, guesses: Any, tol: float) -> None:
    pictures = [os.path.join(output, name) for name in ("convergence.png", "strips.png")]
    shown = slice(0, 5)
    try:
        plot_convergence(histories, pictures[0], tol=tol)
        plot_sequences(
            test.images[shown],
            test.labels[shown],
            {name: guesses[name][shown] for name in ("multiclass", "chain")},
            pictures[1],
        )
    except ImportError as error:
        print(f"pictures  none: {error}", file=messages.out())
    else:
        print(f"pictures  {', '.join(pictures)}", file=messages.out())


def format_table(rows: list[dict]) -> str:
    """Align rows of numbers under their names.

    Parameters
    ----------
    rows : list of dict
        Numbers by name; missing ones are shown as ``-``.

    Returns
    -------
    str

    Examples
    --------
    >>> print(format_table([{"model": "chain", "letter error": 0.05}]))
    model  letter error
    chain        0.0500
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names] + [[_cell(name, row.get(name)) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        first, *rest = (
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if name == "gap":
        return f"{100 * value:.2g} %"
    return f"{value:.2f}" if name == "seconds" else f"{value:.4f}"
