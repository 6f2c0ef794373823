from structsolve.operators import Projection
from structsolve.part_layout import PartLayout
from structsolve.structure.base import Space

class PythonProjection(Projection):
    def __init__(self, space: Space, name: str, layout: PartLayout) -> None: ...
