# The former place of the demo.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.demo")
