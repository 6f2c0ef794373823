"""Data for pipelines of scikit-learn."""

from data import classes

import structsolve

TEXTS = ["red fish swims", "blue fish", "red bird flies", "blue bird sings a song", "bird", "fish"]
NAMES = ["fish", "fish", "bird", "bird", "bird", "fish"]
NUMBERS, TARGETS = classes(30)


def saved(made, folder):
    path = folder / "p.structsolve"
    structsolve.save(made, path)
    return path


def inner(made):
    steps = getattr(made, "steps", None) or getattr(made, "transformer_list", None) or []
    return [step for _, step in [*steps, ("", getattr(made, "estimator", None))]]
