"""The base class of structures: parameters, and the space that they make on given data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..examples.packed import Examples
from ..utils.params import Params

# Plugins find these here, too.
from .space import Space, inherits  # noqa: F401
from .space_operators import node_loss  # noqa: F401

if TYPE_CHECKING:
    from ..protocols import Featurizer


class ConePair(NamedTuple):
    """A cone of the label plane: the labels with ``beta h < g <= alpha h``.

    ``h(y) = <theta, mu(y)> + h0`` and ``g(y) = <cost, mu(y)> + g0``.  A constrained oracle in
    Python gets a cone and returns its label of largest ``h + lam g``.

    Parameters
    ----------
    h0, g0 : float
        Constants of h and g.
    lam : float
    alpha, beta : float
        ``beta >= 0``; an infinite ``alpha`` means only ``h >= 0``.
    twin : bool
        If True, the cone is ``beta h <= g < alpha h``.
    """

    h0: float
    g0: float
    lam: float
    alpha: float
    beta: float
    twin: bool


class Structure(Params):
    """A kind of output, described only by parameters.

    Subclasses set ``name``, store their constructor arguments unmodified, and build a
    :class:`Space` from training data.  Fitting never changes a structure.
    """

    name = "structure"
    #: One node per example: plain 2-D X and 1-D y, a classifier for scikit-learn.
    single_node = False
    #: Number of axes of an example's labels: 1 for sequences, 2 for pictures.
    label_axes = 1
    #: Plain 2-D X, and a matrix of 0 and 1 as y.
    label_sets = False
    #: One row of numbers per example as y, which the shell writes on one line.
    label_rows = False
    #: Nodes of an example share features and labels: ``alpha="auto"`` counts them as fewer.
    alike_nodes = False
    #: The shell's format for all files, such as "conllu"; None: by the file's ending.
    file_format: str | None = None
    #: Constructor parameters that the shell reads from files.  "hierarchy", by ``--hierarchy``: the
    #: structure then takes ``labels`` and ``close`` as well, its space has ``hierarchy`` and
    #: ``single``, and the structure has ``set_scores``.  "network", by ``--network``.
    file_params: tuple[str, ...] = ()
    #: Parameters that change the layout of theta, with values to test.
    #: ``check_structure`` tries them together, where ``check_params()`` does not refuse: code that
    #: reads one layout at the positions of another is silently wrong.
    layouts: Mapping[str, tuple[Any, ...]] = {}
    #: Losses for which conditional risk minimisation predicts rows of numbers of any size.
    continuous_losses: tuple[str, ...] = ()

    def make_featurizer(self, **params: Any) -> Featurizer:
        """Return a transformer from the sentences of a CoNLL-U file to X.

        Parameters
        ----------
        **params
            Constructor arguments of the transformer.

        Returns
        -------
        object
            With ``fit`` and ``transform``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement make_featurizer()")

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[Space, Examples]:
        """Learn classes and sizes from training data; return the space and the packed data.

        Training calls nothing else on X and Y: they are checked and stacked here, once.

        Parameters
        ----------
        X, Y : training data as users give it
        classes : sequence, optional
            All classes, including those that do not occur in Y.
        fit_intercept : bool
            Append a constant feature to the node features.

        Returns
        -------
        space : Space
        examples : Examples
            The result of ``space.pack(X, Y)``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement make_space()")

    def check_params(self) -> None:
        """Refuse invalid parameters, like :meth:`make_space`, but without data.

        The shell calls it before it reads data.  By default nothing is refused.

        Raises
        ------
        ValueError, TypeError
        """

    def space_from_state(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> Space:
        """Rebuild a space.

        Parameters
        ----------
        state : dict
        arrays : dict of str to ndarray
            The arrays that the space's ``state()`` returned.

        Returns
        -------
        Space
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement space_from_state(state, arrays), which "
            "files and copies of models need: a space from what the space's state() returns"
        )

    def score_space(self, classes: Any = None, edge: bool = False) -> Space:
        """Return a space without features, for scores computed elsewhere.

        It has the same blocks as :meth:`make_space` for the same classes; :meth:`Space.pack_sizes`
        makes its examples.

        Parameters
        ----------
        classes : int or sequence, optional
            The number of classes, or their names (:func:`class_names`).
        edge : bool
            Edges have their own scores in addition to shared ones.

        Returns
        -------
        Space

        Raises
        ------
        ValueError
            If the structure does not allow it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not implement score_space(), which makes a space without "
            "features; use a space of make_space(), with examples of its pack()"
        )

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random examples for ``check_structure``.

        Parameters
        ----------
        random_state : int or Generator
        n : int, default=4
            Number of examples.
        size : int, default=3
            Largest size of a label.

        Returns
        -------
        X, Y : tuple
            As users give them.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement sample()")
