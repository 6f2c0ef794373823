"""Task losses in plain Python, as objects with parameters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..examples.packed import Examples
from ..operators import Loss
from ..protocols import Binder, LossObject
from ..utils.params import Params
from .python_operators import PythonLoss


class TaskLoss(Params):
    """A loss in plain Python, for structures of any plugin.

    Subclasses store their constructor arguments unmodified and define :meth:`loss`.  Two more
    methods are optional:

    ``loss_costs(space, examples, i, truth)``
        ``(costs, const)`` with ``L(label, truth) = <costs, mu(label)> + const``: the loss as costs
        of parts, a dict of arrays by block name, like a space's ``parts``.  It allows oracles to
        maximise the loss.
    ``costs(space, examples, i, nu, transposed)``
        ``(costs, const)`` of predictions, if ``nu`` are the marginals of truths; transposed: of
        truths, if ``nu`` are the marginals of predictions.  Required by max-min margins and
        conditional risks.

    Attributes
    ----------
    averaged : bool, default=False
        It is a mean or a verdict for the whole example, not a sum over its parts.
    takes_unseen : bool, default=False
        True labels may contain ``len(space.classes_)``, a label unseen in training.

    Examples
    --------
    Errors at the ends of sequences, of any structure whose labels are classes of nodes:

    >>> import numpy as np
    >>> from structsolve import StructuredSVM, TaskLoss
    >>> class EndsOnly(TaskLoss):
    ...     def __init__(self, weight=1.0):
    ...         self.weight = weight
    ...     def loss(self, space, examples, i, truth, label):
    ...         return self.weight * sum(truth[[0, -1]] != label[[0, -1]])
    ...     def loss_costs(self, space, examples, i, truth):
    ...         node = np.zeros((len(truth), len(space.classes_)))
    ...         node[[0, -1]] = self.weight
    ...         node[[0, -1], truth[[0, -1]]] = 0
    ...         return {"node": node}, 0.0
    >>> X, Y = [np.eye(3), np.eye(3)[::-1]], [["a", "b", "b"], ["b", "b", "a"]]
    >>> StructuredSVM("chain", loss=EndsOnly(2.0)).fit(X, Y).score(X, Y)
    1.0
    """

    averaged = False
    takes_unseen = False

    def loss(
        self, space: Any, examples: Examples, i: int, truth: np.ndarray, label: np.ndarray
    ) -> float:
        """Return the loss of predicting ``label``.

        Parameters
        ----------
        space : Space
        examples : Examples
        i : int
            Number of the example.
        truth, label : ndarray of int32
            Encoded labels.

        Returns
        -------
        float
            At least 0; 0 for the truth.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement loss()")

    def bind(self, space: Any) -> Binder[Loss]:
        """Return a factory for the native loss.

        Parameters
        ----------
        space : Space

        Returns
        -------
        callable
            ``layout -> structsolve.operators.Loss``.
        """
        return partial(PythonLoss, space, self)


def named_losses(space: Any) -> dict[str, LossObject]:
    """Return the losses in a space's attribute ``losses``.

    Parameters
    ----------
    space : Space

    Returns
    -------
    dict of str to loss object
        Empty if the space has no such attribute.

    Raises
    ------
    TypeError
        When it is no dict, or holds anything but loss objects by name.
    """
    losses = getattr(space, "losses", {})
    what = f"structure {space.structure.name!r}: losses of its space"
    if not isinstance(losses, dict):
        raise TypeError(f"{what} is {losses!r}, expected a dict of loss objects by name")
    for name, loss in losses.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} has the name {name!r}, expected a string")
        if isinstance(loss, type) or not isinstance(loss, LossObject):
            raise TypeError(
                f"{what} has {loss!r} as {name!r}, expected an object with bind(), such as a "
                "TaskLoss with its arguments"
            )
    return losses
