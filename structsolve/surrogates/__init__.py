"""Surrogate losses: what turns a structure's oracle into cuts."""

from __future__ import annotations

from typing import Any

from ..params import Params

__all__ = ["Margin"]


class Margin(Params):
    """Margin rescaling: ``max_y L(y, y_i) + <theta_i, mu(y) - mu(y_i)>``.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.surrogates import Margin
    >>> StructuredSVM("multiclass", surrogate=Margin()).get_params()["surrogate"]
    Margin()
    """

    name = "margin"

    def bind(self, potentials: Any, oracle: Any, parts: Any, loss: Any, examples: Any) -> Any:
        """Return the native surrogate on packed examples."""
        from .margin import MarginRescaling

        return MarginRescaling(
            potentials, oracle, parts, loss, examples.labels, examples.label_offsets
        )
