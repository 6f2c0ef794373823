"""The multilabel structure as a plugin: what it declares.

Label sets are labelings of a graph of the labels: with pairs of labels, everything but the losses
comes from structsolve.plugins.mrf.
"""

from structsolve.hookspecs import Named, hookimpl
from structsolve.plugins.multilabel.space import MultilabelSpace, MultilabelStructure

__all__ = ["MultilabelSpace", "MultilabelStructure"]


@hookimpl
def structsolve_structures():
    return [Named("multilabel", MultilabelStructure, "label sets, with scores of pairs of labels")]
