"""Conditional risk minimisation as a plugin: the label of least estimated risk, no surrogate.

``estimator`` holds the settings and the parts of fit; ``ridge`` smooths the targets of ``targets``
over the examples; ``held_out`` and ``own_alpha`` choose alpha, ``diagnostics`` bounds the risk.
"""

from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.risk.diagnostics import RiskBound
    from structsolve.plugins.risk.estimator import ConditionalRiskMinimizer
    from structsolve.plugins.risk.joint import hierarchy_kernel

__all__ = ["ConditionalRiskMinimizer", "RiskBound", "hierarchy_kernel"]
__getattr__ = lazy_names(
    __name__,
    {
        "ConditionalRiskMinimizer": "estimator",
        "RiskBound": "diagnostics",
        "hierarchy_kernel": "joint",
    },
)


@hookimpl
def structsolve_estimators():
    home = Lazy("structsolve.plugins.risk.estimator:ConditionalRiskMinimizer")
    return [Named("ConditionalRiskMinimizer", home, "labels of least estimated risk")]
