"""Surrogate losses: what turns a structure's oracle into cuts."""

from .bicriteria_base import BiCriteria
from .bicriteria_losses import Beta, Generalized, Log, MicroF1, ProbLoss, Slack
from .margin_loss import Margin

__all__ = ["Beta", "BiCriteria", "Generalized", "Log", "Margin", "MicroF1", "ProbLoss", "Slack"]
