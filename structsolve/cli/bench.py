# The former place of bench.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.bench")
