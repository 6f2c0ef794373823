# The former place of the reader of dependency trees.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.dependency.conllu")
