# The former place of metrics of label sets.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.multilabel.metrics")
