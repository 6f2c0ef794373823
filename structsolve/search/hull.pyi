from structsolve.search.base import Search

class ConvexHull(Search):
    def __init__(self, max_calls: int = 50, tol: float = 1e-9, start: float = 0) -> None: ...
