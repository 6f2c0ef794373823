"""An estimator with a file, a command and options of ``fit`` of its own, for contract 1.0."""

import numpy as np
from sklearn.base import BaseEstimator

from structsolve.plugin import out, refuse
from structsolve.utils import container

ABOUT = "counts of steps"
OWN = ("smoothing",)


class StepsCount(BaseEstimator):
    """Gives all rows the commonest class of training."""

    shell = "structsolve_steps_shell"
    array_types = (("counts", "float64"),)

    def __init__(self, smoothing=1.0):
        self.smoothing = smoothing

    def fit(self, X, y):
        self.classes_, counts = np.unique(np.concatenate(y), return_counts=True)
        self.counts_ = counts + float(self.smoothing)
        return self

    def predict(self, X):
        return [np.repeat(self.classes_[self.counts_.argmax()], len(x)) for x in X]

    def save(self, path):
        meta = {"estimator": "StepsCount", "params": {"smoothing": self.smoothing}}
        container.write(path, "model", meta, {"classes": self.classes_, "counts": self.counts_})

    @classmethod
    def from_file(cls, meta, arrays, kernel=None):
        model = cls(**meta["params"])
        model.classes_, model.counts_ = arrays["classes"], arrays["counts"]
        return model


def add_options(group):
    group.add_argument("--smoothing", type=float, default=1.0, help="steps: added to counts")


def check(args, hierarchy):
    refuse(args, ": --estimator steps has none", "kernel")


def make_model(args, structure):
    return StepsCount(args.smoothing)


def trained_text(model):
    return f"{len(model.classes_)} classes counted"


def add_command(parser):
    """Print the counts of a model of steps."""
    parser.add_argument("model")
    return count


def count(args):
    meta, arrays = container.read(args.model, "model", ())
    print(meta["estimator"], arrays["counts"].tolist(), file=out())


def predict(model, args):
    print(model.classes_[model.counts_.argmax()], file=out())


def score(model, args):
    print(float(model.counts_.max()), file=out())
