from structsolve.search.base import Search

class Angular(Search):
    def __init__(self, max_calls: int = 50, tol: float = 1e-6) -> None: ...
