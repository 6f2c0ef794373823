# The former place of RowLoss.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.latent.row_loss")
