# The former place of the reader of FASTA files.
from structsolve.utils.lazy import moved

__getattr__ = moved(__name__, "structsolve.plugins.chain.fasta")
