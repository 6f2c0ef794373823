"""The multiclass structure as a plugin: what it declares, and its hook implementations."""

from structsolve.hookspecs import Named, hookimpl

from structsolve.plugins.multiclass.space import MulticlassSpace, MulticlassStructure

__all__ = ["MulticlassSpace", "MulticlassStructure"]


@hookimpl
def structsolve_structures():
    return [Named("multiclass", MulticlassStructure, "one of K classes per row of features")]


@hookimpl
def structsolve_oracle(space, examples):
    if isinstance(space, MulticlassSpace):
        from structsolve.plugins.multiclass._oracle import MulticlassOracle

        return MulticlassOracle(space.layout, examples.n)


@hookimpl
def structsolve_polytope(space, examples):
    if isinstance(space, MulticlassSpace):
        from structsolve.plugins.multiclass.polytope import Simplex

        return Simplex(space.layout)


@hookimpl
def structsolve_parts(space, examples):
    if isinstance(space, MulticlassSpace):
        from structsolve.plugins.multiclass._oracle import MulticlassParts

        return MulticlassParts(space.layout, examples.n)


@hookimpl
def structsolve_projection(space, examples, regularizer):
    if isinstance(space, MulticlassSpace):
        from structsolve.plugins.multiclass._projections import Softmax, Sparsemax

        if regularizer in ("entropy", "euclidean"):
            projection = Softmax if regularizer == "entropy" else Sparsemax
            return projection(space.layout, examples.n)
