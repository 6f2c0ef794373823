"""Layer 4: surrogates, which turn one example's part scores into a cut ``(p, b)`` and a bound.

It takes operators of a structure and sizes of its parts, and returns cuts.  It uses neither weights
nor features.
"""

from .bicriteria import BiCriteria
from .cut_surrogate import CutSurrogate
from .fenchel_young import CRF, MaxMin, SparseMAP
from .margin import LP, Margin, UnitMargin
from .rescaling import Beta, Generalized, Log, MicroF1, ProbLoss, Slack

__all__ = [
    "CRF",
    "LP",
    "Beta",
    "BiCriteria",
    "CutSurrogate",
    "Generalized",
    "Log",
    "Margin",
    "MaxMin",
    "MicroF1",
    "ProbLoss",
    "Slack",
    "SparseMAP",
    "UnitMargin",
]
