from structsolve.lp.decoder import LinearDecoder
from structsolve.operators import ConeOracle, KBest, Oracle, Parts
from structsolve.part_layout import PartLayout

FEWEST_LABELS: int

class PolytopeCones(ConeOracle):
    @property
    def k(self) -> int: ...
    @property
    def programs(self) -> int: ...
    def __init__(
        self,
        oracle: Oracle,
        kbest: KBest,
        parts: Parts,
        decoder: LinearDecoder,
        k: int,
        layout: PartLayout,
    ) -> None: ...
