"""A task: the operators of a structure, bound to packed examples, for use by a surrogate."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .. import abi
from ..examples.packed import Examples
from ..lp.ask import ask_cones, ask_oracle, ask_program_power
from ..operators import Loss, Oracle, Parts
from ..part_layout import PartLayout
from ..structure.ask import Bind, ask_loss, ask_parts, ask_power, ask_projection, make_layout
from ..structure.base import Space
from ..utils.suggest import a_type
from .base import Surrogate


class Asked:
    """The factories of a space, requested once: oracle, parts, loss and powers.

    Parameters
    ----------
    space : Space
    loss, oracle
        See :class:`Task`.

    Attributes
    ----------
    oracle, parts, loss : callable
        From a PartLayout to these operators.
    """

    def __init__(self, space: Space, loss: Any = "hamming", oracle: Any = None):
        self.space, self.backend = space, oracle
        self.oracle, self.parts = ask_oracle(space, oracle), ask_parts(space)
        self.loss = ask_loss(space, loss)
        self._powers: dict[str, Bind | None] = {}
        self._projections: dict[str, Bind] = {}

    def projection(self, name: str) -> Bind:
        """Return a factory for a projection.

        Parameters
        ----------
        name : str
            Of its regularizer, such as "entropy".

        Returns
        -------
        callable
            From a PartLayout to the Projection.

        Raises
        ------
        ValueError
            Where no plugin gives one.
        """
        if name not in self._projections:
            self._projections[name] = ask_projection(self.space, name)
        return self._projections[name]

    def power(self, name: str) -> Bind | None:
        """Return a factory for a power.

        Parameters
        ----------
        name : str
            See :meth:`Task.power`.

        Returns
        -------
        callable or None
            From a PartLayout to the operator, or to None if the examples have no such operator.
        """
        if name not in self._powers:
            if self.backend is not None:
                self._powers[name] = ask_program_power(self.space, self.backend, name)
            elif name != "cones":
                self._powers[name] = ask_power(self.space, name)
            else:
                self._powers[name] = None
        return self._powers[name]


class Task:
    """A structure and its examples for a surrogate, without weights and features.

    Parameters
    ----------
    space : Space
    examples : Examples
        Features may be missing.  Labels may be missing too: truths are given at every call.
    loss : str or loss object, default="hamming"
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs over the structure's polytope, instead of its oracle.
    layout : PartLayout, optional
        Layout of these examples, if it exists; for training.
    asked : Asked, optional
        Factories of the same space, loss and oracle, from tasks for other examples.

    Attributes
    ----------
    layout : PartLayout
    oracle, parts, loss : Oracle, Parts, Loss
        Bound to the examples.
    labels : ndarray of int32, or None
        True labels, concatenated.

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
        asked: Asked | None = None,
    ):
        self.space, self.examples = space, examples
        self._asked = Asked(space, loss, oracle) if asked is None else asked
        self.layout = make_layout(space, examples, training=True) if layout is None else layout
        self.labels: np.ndarray | None = examples.labels
        self.parts: Parts = self._asked.parts(self.layout)
        self.loss: Loss = self._asked.loss(self.layout)
        if self.labels is not None:
            self.loss.check_truths(self.labels)
            self._refuse_unseen(self.labels)
            space.check_labels(self.labels, examples)
        self._powers: dict[str, Any] = {}

    @cached_property
    def oracle(self) -> Oracle:
        """The oracle, bound to the examples; bound late, since not every surrogate has a use."""
        return self._asked.oracle(self.layout)

    def _refuse_unseen(self, labels: np.ndarray) -> None:
        # A loss may have values for labels unseen in training; the parts have no place for them.
        n_states = self.parts.n_states
        beyond = np.flatnonzero(labels >= n_states) if n_states else np.zeros(0, int)
        if beyond.size:
            i = int(np.searchsorted(self.examples.label_offsets, beyond[0], side="right")) - 1
            raise ValueError(
                f"example {i}: the true label holds {labels[beyond[0]]}, expected states 0 to "
                f"{n_states - 1}; pack training data with unseen='error'"
            )

    def projection(self, name: str) -> Any:
        """Return a projection, bound to the examples.

        Parameters
        ----------
        name : str
            Of its regularizer, such as "entropy".

        Returns
        -------
        structsolve.operators.Projection

        Raises
        ------
        ValueError
            Where these examples have none.
        """
        return self._asked.projection(name)(self.layout)

    def power(self, name: str) -> Any:
        """Return the operator of a power, bound to the examples; None if there is none.

        Parameters
        ----------
        name : str
            A key of :data:`structsolve.structure.ask.POWERS`.  An LP backend has only the powers of
            its programs; every structure with a polytope has "cones".

        Returns
        -------
        structsolve.operators.Operator or None
        """
        if name not in self._powers:
            self._powers[name] = self._bound(name)
        return self._powers[name]

    def _bound(self, name: str) -> Any:
        bind = self._asked.power(name)
        if bind is None and name == "cones":
            kbest = self.power("kbest")
            return ask_cones(self.space, self.oracle, self.parts, kbest)
        return None if bind is None else bind(self.layout)


def bind_surrogate(surrogate: Any, task: Task) -> Surrogate:
    """Return the native surrogate of a surrogate object, bound to a task.

    Parameters
    ----------
    surrogate : object
        Its ``bind(task)`` makes the native one.
    task : Task

    Returns
    -------
    Surrogate

    Raises
    ------
    ImportError
        If it was compiled against another C API.
    TypeError
        If ``bind()`` returns anything else.
    """
    native = surrogate.bind(task)
    abi.refuse_stale(native)
    if not isinstance(native, Surrogate):
        raise TypeError(
            f"surrogate {type(surrogate).__name__}: bind(task) returned {a_type(native)}, expected "
            "a structsolve.surrogates.base.Surrogate"
        )
    return native
