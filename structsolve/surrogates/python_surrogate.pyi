from typing import Any

from structsolve.surrogates.base import Surrogate
from structsolve.surrogates.cut_surrogate import CutSurrogate

class PythonSurrogate(Surrogate):
    def __init__(self, plain: CutSurrogate, task: Any) -> None: ...
