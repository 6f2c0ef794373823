# The former place of schemes of chunk tags.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.tag_schemes")
