# The former place of features of words.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.token_features")
