from typing import Any

from structsolve.part_layout import PartLayout
from structsolve.structure.base import Space

TRUTH_BYTES: int

class Vector: ...

class Memo:
    def __init__(self, space: Space) -> None: ...

class Place:
    def __init__(self, block: Any, starts: Any) -> None: ...

class Adapter:
    def __init__(self, space: Space, layout: PartLayout, owner: Any = None) -> None: ...
