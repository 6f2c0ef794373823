"""One of K classes per row as a plugin: structure, operators, and solvers of their own.

``interior_point`` solves Newton systems of few features for margins, ``newton`` for ``"crf"``; both
read ``class_rows``.  ``smo`` trains kernel models.
"""

from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.plugins.multiclass.row_operators import class_power, row_oracle, row_projection
from structsolve.plugins.multiclass.space import MulticlassSpace, MulticlassStructure
from structsolve.structure.base import node_loss
from structsolve.structure.operator_hooks import OperatorHooks
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.multiclass.interior_point import InteriorPoint
    from structsolve.plugins.multiclass.smo import SMO

__all__ = ["SMO", "InteriorPoint", "MulticlassSpace", "MulticlassStructure"]
__getattr__ = lazy_names(__name__, {"InteriorPoint": "interior_point", "SMO": "smo"})
_hooks = OperatorHooks(__name__, MulticlassSpace)


@hookimpl
def structsolve_structures():
    return [Named("multiclass", MulticlassStructure, "one of K classes per row of features")]


@hookimpl
def structsolve_solvers():
    newton = Lazy("structsolve.plugins.multiclass.interior_point:InteriorPoint")
    pairs = Lazy("structsolve.plugins.multiclass.smo:SMO")
    return [
        Named("interior-point", newton, "Newton systems for classes of few features"),
        Named("smo", pairs, "pair steps of the largest gain, for kernel models of classes"),
    ]


structsolve_oracle = _hooks.hookimpl(row_oracle)
structsolve_parts = _hooks.operator("_oracle:MulticlassParts")
structsolve_power = _hooks.hookimpl(class_power)
structsolve_projection = _hooks.hookimpl(row_projection)
structsolve_loss = _hooks.hookimpl(node_loss)
structsolve_polytope = _hooks.operator(
    "polytope:Simplex", lambda space, simplex: lambda _: simplex(space.layout)
)
