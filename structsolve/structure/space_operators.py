"""The operators of a space: each method returns what binds one to packed examples."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import registry
from ..examples.packed import Examples
from ..part_layout import PartLayout
from ..potentials.weight_layout import WeightLayout
from .node_losses import make_node_loss
from .weighted_labels import bind_weighted

if TYPE_CHECKING:
    from ..lp import Polytopes
    from ..operators import Loss, Operator, Oracle, Parts, Projection
    from ..protocols import Binder


class SpaceOperators:
    """The factories of a space's operators.

    Each method returns a callable that takes a :class:`structsolve.part_layout.PartLayout` and
    returns the operator for its examples; its class, or a ``functools.partial`` of it whose last
    argument is the layout.  The method is called once per space, the factory often; operators must
    not depend on labels or features.  None means that the space has no such operator.  The defaults
    return a plugin's declaration for this class.
    """

    structure: Any
    layout: WeightLayout

    def make_oracle(self) -> Binder[Oracle] | None:
        """Return a factory for the oracle.

        Returns
        -------
        callable or None
            ``layout -> structsolve.operators.Oracle``.
        """
        return self._declared("structsolve_oracle")

    def make_parts(self) -> Binder[Parts] | None:
        """Return a factory for the parts of labels.

        Returns
        -------
        callable or None
            ``layout -> structsolve.operators.Parts``.
        """
        return self._declared("structsolve_parts")

    def make_power(self, name: str) -> Binder[Operator] | None:
        """Return a factory for a power of the oracle.

        Parameters
        ----------
        name : {"kbest", "max-marginals", "augmented", "relaxation", "cones", "counts"}
            Operators, in this order: ``KBest``, ``MaxMarginals``, ``AugmentedOracle``,
            ``Relaxation``, ``ConeOracle``, ``CountOracle``.

        Returns
        -------
        callable or None
            ``layout -> operator``; the factory returns None if some examples do not support the
            power.
        """
        return self._declared("structsolve_power", power=name)

    def make_projection(self, regularizer: str) -> Binder[Projection] | None:
        """Return a factory for a projection.

        Parameters
        ----------
        regularizer : str
            ``"entropy"``, ``"euclidean"``, or another name of the plugin.

        Returns
        -------
        callable or None
            ``layout -> structsolve.operators.Projection``.
        """
        return self._declared("structsolve_projection", regularizer=regularizer)

    def make_loss(self, loss: Any) -> Binder[Loss] | None:
        """Return a factory for a task loss.

        Parameters
        ----------
        loss : str or object
            The user's ``loss``.

        Returns
        -------
        callable or None
            ``layout -> structsolve.operators.Loss``.

        Raises
        ------
        ValueError
            If the loss is known, but does not fit this space.
        """
        return self._declared("structsolve_loss", loss=loss)

    def make_max_min(
        self, loss: Loss, layout: PartLayout | None = None
    ) -> Binder[Projection] | None:
        """Return a factory for ``argmax_mu min_nu nu' A mu + <theta, mu>`` in closed form.

        Parameters
        ----------
        loss : structsolve.operators.Loss
            Bound to the same examples; A is the matrix of its costs.
        layout : PartLayout, optional
            Of contract 1.0: return what is bound to it.

        Returns
        -------
        callable or None
            ``layout -> structsolve.operators.Projection``.
        """
        made = self._declared("structsolve_max_min", loss=loss, layout=layout)
        return made if layout is None else _bound(made, "make_max_min(loss)", layout)

    def make_polytopes(self, examples: Examples | None = None) -> Binder[Polytopes] | None:
        """Return a factory for the polytopes of examples, for linear programs.

        Parameters
        ----------
        examples : Examples, optional
            Of contract 1.0: return what is bound to them.

        Returns
        -------
        callable or None
            ``layout -> structsolve.lp.Polytopes``.
        """
        made = self._declared("structsolve_polytope", examples=examples)
        if examples is None:
            return made
        examples.check(self.layout, self.structure.name, columns=False, features=False)
        return _bound(made, "make_polytopes()", PartLayout(self.layout, examples))

    def _declared(self, hook: str, **arguments: Any) -> Any:
        return registry.default().declared(hook, space=self, **arguments)


def _bound(made: Any, method: str, layout: PartLayout) -> Any:
    text = f"{method} returns a callable that takes a layout; call it so, and then that"
    warnings.warn(text, FutureWarning, stacklevel=3)
    return made(layout) if callable(made) else made


def node_loss(space: Any, loss: Any) -> Binder[Loss] | None:
    """Return a factory for a loss over nodes: Hamming, zero-one, or costs of classes.

    Parameters
    ----------
    space : NodeSpace
    loss : str or object

    Returns
    -------
    callable or None
        ``layout -> structsolve.operators.Loss``; None for losses not over nodes.
    """
    bind = make_node_loss(space, loss)
    return None if bind is None else partial(bind_weighted, bind)
