"""An estimator of another package with files and a command of its own: the commonest class."""

import json

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from structsolve import registry
from structsolve.cli.messages import out
from structsolve.io.conll import read_conll
from structsolve.utils import container


class RingVote(BaseEstimator):
    """Gives all positions of a ring the class that is commonest in training.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to the count of every class.
    """

    shell = "structsolve_ring_vote"
    array_types = (("counts", "float64"),)
    mapped_arrays = ("counts",)

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        self.classes_, counts = np.unique(np.concatenate(y), return_counts=True)
        self.counts_ = counts + float(self.alpha)
        return self

    def predict(self, X):
        check_is_fitted(self)
        return [np.repeat(self.classes_[self.counts_.argmax()], len(x)) for x in X]

    def save(self, path):
        meta = {"estimator": "RingVote", "params": {"alpha": self.alpha}}
        meta["by"] = registry.default().source_of("estimators", self)  # told if it is missing
        container.write(path, "model", meta, {"classes": self.classes_, "counts": self.counts_})

    @classmethod
    def from_file(cls, meta, arrays, kernel=None):
        model = cls(**meta["params"])
        model.classes_, model.counts_ = arrays["classes"], arrays["counts"]
        return model


def add_command(parser):
    """Count the classes of rings, and save the commonest."""
    parser.add_argument("data")
    parser.add_argument("--model", required=True)
    parser.add_argument("--alpha", type=float, default=1.0)
    return fit


def fit(args):
    """Run the command."""
    model = RingVote(args.alpha).fit(*read_conll(args.data))
    model.save(args.model)
    print(f"saved {args.model}", file=out())


def predict(model, args):
    """What ``structsolve predict`` does with such a model."""
    for label in np.concatenate(model.predict(read_conll(args.data)[0])):
        print(label, file=out())


def score(model, args):
    """What ``structsolve score`` does with such a model."""
    X, y = read_conll(args.data)
    right = np.concatenate(model.predict(X)) == np.concatenate(y)
    print(json.dumps(float(np.mean(right))), file=out())
