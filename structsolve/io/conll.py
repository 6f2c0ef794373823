# The former place of the reader of CoNLL columns.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.conll")
