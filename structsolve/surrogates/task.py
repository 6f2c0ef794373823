"""A task: what a surrogate is made of, the operators of a structure bound to packed examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples.packed import Examples
from ..examples.stacking import pieces
from ..lp.ask import ask_cones, ask_oracle, ask_program_power
from ..operators import Loss, Oracle, Parts
from ..part_layout import PartLayout
from ..structure.ask import ask_loss, ask_parts, ask_power, make_layout
from ..structure.base import Space


class Task:
    """What a surrogate knows of a structure and its examples: no weights and no features.

    Parameters
    ----------
    space : Space
    examples : Examples
        Features may be missing.  Labels may be missing too: truths are given at every call.
    loss : str or loss object, default="hamming"
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs over the structure's polytope, in place of its own oracle.
    layout : PartLayout, optional
        Of these examples, where it has been made; for training.

    Attributes
    ----------
    layout : PartLayout
    oracle, parts, loss : Oracle, Parts, Loss
        Bound to the examples.
    labels : ndarray of int32, or None
        True labels, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.surrogates import Margin
    >>> from structsolve.surrogates.calls import cut
    >>> from structsolve.surrogates.task import Task
    >>> space, _ = structsolve.get_structure("multiclass").make_space([[0.0]] * 2, ["a", "b"])
    >>> task = Task(space, structsolve.Examples(np.array([0, 1])))
    >>> margin = Margin().bind(task)
    >>> answer = cut(margin, 0, np.array([0.5, 0.2]), truth=np.array([1], np.int32))
    >>> answer.bound
    1.3
    """

    def __init__(
        self,
        space: Space,
        examples: Examples,
        loss: Any = "hamming",
        oracle: Any = None,
        layout: PartLayout | None = None,
    ):
        self.space, self.examples = space, examples
        self.layout = make_layout(space, examples, training=True) if layout is None else layout
        self.labels: np.ndarray | None = examples.labels
        self.oracle: Oracle = ask_oracle(space, oracle)(self.layout)
        self.parts: Parts = ask_parts(space)(self.layout)
        self.loss: Loss = ask_loss(space, loss)(self.layout)
        if self.labels is not None:
            self.loss.check_truths(self.labels)
            self._refuse_unseen(self.labels)
            self._refuse_outside(self.labels)
        self._backend = oracle
        self._powers: dict[str, Any] = {}

    def _refuse_unseen(self, labels: np.ndarray) -> None:
        # A loss may have values for a label that training did not see; the parts have no place.
        n_states = self.parts.n_states
        beyond = np.flatnonzero(labels >= n_states) if n_states else np.zeros(0, int)
        if beyond.size:
            i = int(np.searchsorted(self.examples.label_offsets, beyond[0], side="right")) - 1
            raise ValueError(
                f"example {i}: the true label holds {labels[beyond[0]]}, expected states 0 to "
                f"{n_states - 1}; pack training data with unseen='error'"
            )

    def _refuse_outside(self, labels: np.ndarray) -> None:
        # A truth that no oracle returns would be scored against labels it can never be.
        if type(self.space).contains is Space.contains:
            return
        for i, label in enumerate(pieces(labels, self.examples.label_offsets)):
            if not self.space.contains(label, self.examples, i):
                raise ValueError(
                    f"example {i}: the true label is no label of structure "
                    f"{self.space.structure.name!r} (contains() is False); correct the label, or "
                    "leave the example out"
                )

    def power(self, name: str) -> Any:
        """Return the operator of a power, bound to the examples; None where there is none.

        Parameters
        ----------
        name : str
            A key of :data:`structsolve.structure.ask.POWERS`.  An LP backend has the powers of its
            programs alone; every structure with a polytope has "cones".

        Returns
        -------
        structsolve.operators.Operator or None
        """
        if name not in self._powers:
            self._powers[name] = self._bound(name)
        return self._powers[name]

    def _bound(self, name: str) -> Any:
        if self._backend is None and name != "cones":
            bind = ask_power(self.space, name)
        elif self._backend is not None:
            bind = ask_program_power(self.space, self._backend, name)
        else:
            bind = None
        if bind is None and name == "cones":
            kbest = self.power("kbest")
            return ask_cones(self.space, self.oracle, self.parts, kbest)
        return None if bind is None else bind(self.layout)
