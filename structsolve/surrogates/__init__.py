"""Surrogate losses: what turns a structure's oracle or projection into cuts."""

from .bicriteria_base import BiCriteria
from .bicriteria_losses import Beta, Generalized, Log, MicroF1, ProbLoss, Slack
from .margin_loss import LP, Margin, UnitMargin
from .projected_losses import CRF, MaxMin, SparseMAP

__all__ = [
    "CRF",
    "LP",
    "Beta",
    "BiCriteria",
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
