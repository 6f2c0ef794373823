# The former place of the reader of CRFsuite's text.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.crfsuite")
