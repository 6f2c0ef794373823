from typing import final

from structsolve.operators import ConeOracle, KBest, Oracle, Projection
from structsolve.part_layout import PartLayout

@final
class ClassOracle(Oracle):
    def __init__(self, steps: bool, layout: PartLayout) -> None: ...

@final
class ClassKBest(KBest):
    def __init__(self, steps: bool, layout: PartLayout) -> None: ...

@final
class ClassCones(ConeOracle):
    def __init__(self, steps: bool, layout: PartLayout) -> None: ...

@final
class ClassProjection(Projection):
    def __init__(self, steps: bool, entropy: bool, layout: PartLayout) -> None: ...
    def derivative_bytes(self) -> int: ...
