"""Hidden Markov models as a plugin: chains whose scores are log-probabilities.

``estimator`` counts, or alternates the chain's marginals with counts (Baum and Welch);
``emissions`` are the distributions of observations.
"""

from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.hidden_markov.estimator import HiddenMarkovModel

__all__ = ["HiddenMarkovModel"]
__getattr__ = lazy_names(__name__, {"HiddenMarkovModel": "estimator"})


@hookimpl
def structsolve_estimators():
    home = Lazy("structsolve.plugins.hidden_markov.estimator:HiddenMarkovModel")
    return [Named("HiddenMarkovModel", home, "states of sequences, by counts or EM")]
