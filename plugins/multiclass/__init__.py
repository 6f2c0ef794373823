"""One of K classes per row as a plugin: structure, operators, and Newton systems of few features.

``interior_point`` is the solver for margins, ``newton`` for ``"crf"``; both read ``class_rows``.
"""

from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.multiclass.row_operators import (
    class_parts,
    class_power,
    row_oracle,
    row_projection,
)
from structsolve.plugins.multiclass.space import MulticlassSpace, MulticlassStructure
from structsolve.structure.base import node_loss
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.multiclass.interior_point import InteriorPoint

__all__ = ["InteriorPoint", "MulticlassSpace", "MulticlassStructure"]
__getattr__ = lazy_names(__name__, {"InteriorPoint": "interior_point"})


@hookimpl
def structsolve_structures():
    return [Named("multiclass", MulticlassStructure, "one of K classes per row of features")]


@hookimpl
def structsolve_solvers():
    home = Lazy("structsolve.plugins.multiclass.interior_point:InteriorPoint")
    return [Named("interior-point", home, "Newton systems for classes of few features")]


@hookimpl(trylast=True)
def structsolve_oracle(space):
    if isinstance(space, MulticlassSpace):
        return row_oracle(space)


@hookimpl(trylast=True)
def structsolve_parts(space):
    if isinstance(space, MulticlassSpace):
        return class_parts()


@hookimpl(trylast=True)
def structsolve_power(space, power):
    if isinstance(space, MulticlassSpace):
        return class_power(space, power)


@hookimpl(trylast=True)
def structsolve_projection(space, regularizer):
    if isinstance(space, MulticlassSpace):
        return row_projection(space, regularizer)


@hookimpl(trylast=True)
def structsolve_loss(space, loss):
    if isinstance(space, MulticlassSpace):
        return node_loss(space, loss)


@hookimpl(trylast=True)
def structsolve_polytope(space):
    if isinstance(space, MulticlassSpace):
        from structsolve.plugins.multiclass.polytope import Simplex

        return lambda _: Simplex(space.layout)
