"""Losses and surrogates that each break one promise, with the message."""

import numpy as np
from kit_collector import collector
from python_structures import PyChainSpace, py_chain

from structsolve.structure.losses import CostMatrix
from structsolve.surrogates import Margin, Slack
from structsolve.testing import check_loss, check_surrogate
from structsolve.utils.params import Params

KITS, wrong = collector()


@wrong(check_loss, r"can be built.*unknown loss 'hammming'")
def LossOfNobody():
    return "hammming"


class ByObject(Params):
    """A loss object."""

    def __init__(self, answer=None):
        self.answer = answer

    def bind(self, space):
        return self.answer


@wrong(check_loss, r"can be built.*bind.space. returned a NoneType, expected a callable")
def LossThatBindsNothing():
    return ByObject()


@wrong(check_loss, r"can be built.*what bind.space. returned made a list, expected a ")
def LossThatIsNone():
    return ByObject(lambda layout: [])


@wrong(check_loss, r"can be built.*(0 for the true|diagonal)", "multiclass")
def MatrixWithCostsOfTheTruth():
    return CostMatrix(np.ones((3, 3)))


@wrong(check_surrogate, r"bind .* makes a native surrogate of a task.*AttributeError")
def BindsNothing():
    class Nothing(Margin):
        def bind(self, task):
            return task.nothing

    return Nothing()


def of_space(surrogate, message, **methods):
    """Collect a surrogate of a chain whose operators are wrong."""
    name = "".join([type(surrogate).__name__, "Of", *(m.__name__ for m in methods.values())])

    def make():
        return surrogate

    make.__name__ = name
    KITS.append((check_surrogate, name, make, (py_chain(**methods),), {}, message))


def SecondBest(self, examples, i, theta):
    return self.ranked(examples, i, theta)[0][:2][-1]


def TheWorst(self, examples, i, theta):
    return self.ranked(examples, i, theta)[0][-1]


def PartsTurned(self, examples, i, label):
    mu = PyChainSpace.parts(self, examples, i, label)
    return {**mu, "transition": mu["transition"].T}


of_space(
    Margin(), r"is convex: no cut lies above the bound elsewhere|is at least 0", argmax=SecondBest
)
of_space(
    Margin(), r"is convex: no cut lies above the bound elsewhere|is at least 0", argmax=TheWorst
)
of_space(Slack(), r"is convex|is at least 0|is exact|at least its cut", argmax=TheWorst)
of_space(
    Margin(),
    r"is convex|is exact, so its bound|at least its cut|at least 0|slope",
    parts=PartsTurned,
)
