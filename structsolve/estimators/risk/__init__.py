"""Conditional risk minimisation: the label of least estimated risk, without a surrogate."""

from .diagnostics import RiskBound
from .estimator import ConditionalRiskMinimizer
from .joint import hierarchy_kernel

__all__ = ["ConditionalRiskMinimizer", "RiskBound", "hierarchy_kernel"]
