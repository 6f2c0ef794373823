"""The operators for predictions of a fitted model: plugins are called once, factories per call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..lp.ask import ask_oracle, ask_program_power
from ..projections.choose import named_projection
from ..structure.ask import Bind, ask_loss, ask_parts, ask_power


def _asking(name: str) -> Callable[[Any, Any], Bind | None]:
    # With an LP backend, only the powers of its programs are available.
    return lambda space, backend: (
        ask_power(space, name) if backend is None else ask_program_power(space, backend, name)
    )


_ASK: dict[str, Callable[..., Bind | None]] = {
    "oracle": ask_oracle,
    "parts": lambda space, backend: ask_parts(space),
    "loss": lambda space, backend, loss: ask_loss(space, loss),
    "kbest": _asking("kbest"),
    "max-marginals": _asking("max-marginals"),
    "projection": lambda space, backend, name: named_projection(space, name),
}


def _is_name(given: Any) -> bool:
    return given is None or isinstance(given, str)


class _Kept:
    """The factories of one space: an object, so prediction changes no attribute of a model."""

    def __init__(self, space: Any):
        self.space = space
        self.binds: dict[tuple[Any, ...], Bind | None] = {}
        # Per operator the way of a short example through one call, and the model it was sought for.
        self.direct: dict[str, tuple[Any, Any]] = {}


class OperatorsMixin:
    """Keeps the factories of the operators of ``space_``; files, pickles and clones omit them."""

    space_: Any
    oracle: Any = None
    _operators: _Kept

    def _asked(self, what: str, given: Any = None, space: Any = None, own: bool = False) -> Any:
        """Return a factory for an operator; the plugins are called once, at the first request.

        Parameters
        ----------
        what : str
            "oracle", "parts", "loss", "kbest", "max-marginals" or "projection".  With an LP backend
            in ``oracle``, "oracle" and the powers are the backend's.
        given : str or loss object, optional
            Which loss, or which projection.
        space : Space, optional
            That of the model by default.
        own : bool, default=False
            Use the structure's operator despite an LP backend.

        Returns
        -------
        callable, or None if the structure has no such power
        """
        space = self.space_ if space is None else space
        arguments = () if given is None else (given,)
        oracle = None if own else self.oracle
        # set_params() may change objects: only operators given by name are kept.
        if not (_is_name(given) and _is_name(oracle)):
            return _ASK[what](space, oracle, *arguments)
        kept = self.__dict__.get("_operators")
        if kept is None or kept.space is not space:
            kept = self._operators = _Kept(space)
        names = what, given, oracle
        if names not in kept.binds:
            kept.binds[names] = _ASK[what](space, oracle, *arguments)
        return kept.binds[names]

    def _forget_operators(self) -> None:
        """Start again for ``space_``."""
        self._operators = _Kept(self.space_)

    def _power(self, name: str, layout: Any, own: bool = False) -> Any:
        """Return the operator of a power, None if the structure or the examples lack it."""
        bind = self._asked(name, own=own)
        return None if bind is None else bind(layout)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())  # type: ignore[misc]
        state.pop("_operators", None)
        return state
