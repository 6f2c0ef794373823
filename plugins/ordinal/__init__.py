"""The ordinal structure as a plugin: what it declares, and its hook implementations.

With one score per class it is structsolve.plugins.multiclass in everything but losses and labels,
whose operators it gets as a subclass of its space.
"""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.ordinal.losses import LOSSES
from structsolve.plugins.ordinal.space import OrdinalSpace, OrdinalStructure, ThresholdSpace

__all__ = ["OrdinalSpace", "OrdinalStructure", "ThresholdSpace"]


@hookimpl
def structsolve_structures():
    return [Named("ordinal", OrdinalStructure, "one of K ordered classes per row of features")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, ThresholdSpace):
        from structsolve.plugins.ordinal._oracle import ThresholdOracle

        return ThresholdOracle(space.layout, len(space.classes_), examples.n)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, ThresholdSpace):
        from structsolve.plugins.ordinal._oracle import ThresholdParts

        return ThresholdParts(space.layout, len(space.classes_), examples.n)


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, ThresholdSpace) and regularizer in ("entropy", "euclidean"):
        from structsolve.plugins.ordinal._projections import ThresholdProjection

        return ThresholdProjection(
            space.layout, len(space.classes_), examples.n, regularizer == "entropy"
        )


@hookimpl
def structsolve_loss(space, examples, loss):
    if isinstance(space, (OrdinalSpace, ThresholdSpace)):
        from structsolve.plugins.ordinal.losses import make_loss

        return make_loss(space, examples, loss)


@hookimpl
def structsolve_loss_names():
    return list(LOSSES)
