# The former place of the reader of CoNLL columns, which packages for contract 1.0 import.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.conll")
