"""Models that score new examples: learned weights, or their substitute."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..examples.given import refuse_infinite, within
from ..examples.packed import Examples
from ..utils.arrays import aligned_zeros
from .linear import LinearPotentials
from .make import is_shared
from .mercer import Kernel
from .shared import SharedPotentials
from .weight_layout import WeightLayout

# Weights up to LARGE have finite scores for features up to HUGE; with others scores may be as large
# as MOST_SCORE.
LARGE, MOST_SCORE = 1e200, 1e300


class Coef(dict):
    """Weights by block name; scikit-learn's selectors, which want an array, are told what to do."""

    @property
    def ndim(self) -> int:
        """Missing, with the reason."""
        raise AttributeError(
            "coef_ is a dict of arrays, from which features are selected by importance_getter="
            "structsolve.features.importances.feature_importances"
        )


class Model:
    """The model by which a fitted estimator predicts.

    Subclasses score parts, or return best labels directly.

    Prediction, scoring, warm starts and files use only this interface.

    Attributes
    ----------
    weights : ndarray of shape (dim,), or None
        The flat weights, if the model consists only of weights.
    """

    #: Prefix of the names of its arrays in a model file.
    key: ClassVar[str]
    weights: np.ndarray | None = None

    def check_input(self, X: Any) -> bool:
        """Refuse X that does not fit; return whether to read its features as dense.

        Parameters
        ----------
        X : as users give it

        Returns
        -------
        bool

        Raises
        ------
        ValueError
        """
        return False

    def best_labels(
        self, examples: Examples, constrained: bool, n_jobs: int | None
    ) -> np.ndarray | None:
        """Return best labels, concatenated; None if an oracle finds them by the scores.

        Parameters
        ----------
        examples : Examples
        constrained : bool
            Some labels are not allowed.
        n_jobs : int, optional

        Returns
        -------
        ndarray of int32, or None

        Raises
        ------
        ValueError
            If the model takes no constraints.
        """
        return None

    def scores(
        self, examples: Examples, dense: bool = False, n_jobs: int | None = 1
    ) -> tuple[LinearPotentials, np.ndarray]:
        """Return the potentials of packed examples, and their vector.

        Parameters
        ----------
        examples : Examples
        dense : bool
            From :meth:`check_input`.
        n_jobs : int, optional

        Returns
        -------
        potentials : LinearPotentials
        w : ndarray

        Raises
        ------
        ValueError
            If a feature is not finite, or the model has no scores of parts.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement scores()")

    def attributes(self) -> dict[str, Any]:
        """Return fitted attributes of the estimator by name: ``coef_`` and others."""
        raise NotImplementedError(f"{type(self).__name__} does not implement attributes()")

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays for a model file."""
        raise NotImplementedError(f"{type(self).__name__} does not implement to_arrays()")

    @classmethod
    def from_arrays(cls, space: Any, arrays: dict[str, np.ndarray], kernel: Kernel | None) -> Model:
        """Rebuild a model from :meth:`to_arrays`.

        Parameters
        ----------
        space : Space
        arrays : dict of str to ndarray
        kernel : Kernel, optional
            The estimator's kernel.

        Returns
        -------
        Model

        Raises
        ------
        ValueError
            If the arrays do not fit the space.
        """
        raise NotImplementedError(f"{cls.__name__} does not implement from_arrays()")


class LinearModel(Model):
    """Weights of features.

    Parameters
    ----------
    space : Space
    w : ndarray of shape (dim,)
        Copied to memory that is aligned for the vector loops.

    Attributes
    ----------
    bounded : bool
        Whether scores are finite for all features that are not refused.

    Examples
    --------
    >>> import numpy as np
    >>> import structsolve
    >>> from structsolve.potentials.calls import score
    >>> space, examples = structsolve.get_structure("multiclass").make_space([[2.0], [1.0]], [0, 1])
    >>> coef = {"node": np.array([[1.0, -1.0]]), "intercept": np.array([0.5, 0.0])}
    >>> model = LinearModel.from_arrays(space, coef, None)
    >>> potentials, w = model.scores(examples)
    >>> score(potentials, 0, w).tolist()
    [2.5, -2.0]
    """

    key = "coef"
    weights: np.ndarray

    def __init__(self, space: Any, w: Any):
        self.space = space
        self.weights = aligned_zeros(space.layout.dim)
        self.weights[:] = w
        # Checked once, so that the cost of a prediction does not depend on the model's size.
        self.bounded = within(self.weights, LARGE)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copies and pickles are aligned anew.
        self.__init__(state["space"], state["weights"])  # type: ignore[misc]

    def scores(
        self, examples: Examples, dense: bool = False, n_jobs: int | None = 1
    ) -> tuple[LinearPotentials, np.ndarray]:
        layout = self.space.layout
        examples.check(layout, self.space.structure.name)
        if not self.bounded:
            refuse_nan(self.weights)
            most = MOST_SCORE / float(np.abs(self.weights).max())
            refuse_infinite(examples.nodes, examples.offsets, most=most)
            refuse_infinite(examples.edges, examples.edge_offsets, "edge features", most)
        make = SharedPotentials if is_shared(examples) else LinearPotentials
        return make(examples, layout, n_jobs=n_jobs), self.weights

    def attributes(self) -> dict[str, Any]:
        return {"coef_": Coef(split_weights(self.space.layout, self.weights))}

    def to_arrays(self) -> dict[str, np.ndarray]:
        return split_weights(self.space.layout, self.weights)

    @classmethod
    def from_arrays(
        cls, space: Any, arrays: dict[str, np.ndarray], kernel: Kernel | None
    ) -> LinearModel:
        layout = space.layout
        # Before memory is allocated: sizes in a file may be arbitrary.
        if layout.dim > 64 * (1 + sum(rows.size for rows in arrays.values())):
            raise ValueError(f"{layout.dim} weights are expected, far more than it holds")
        w = np.zeros(layout.dim)
        for block in layout.blocks:
            view = layout.view(w, block.name)
            rows = arrays[block.name]
            if block.kind == "node" and layout.intercept:
                rows = np.concatenate([rows, arrays["intercept"][None]])
            if rows.shape != view.shape:
                raise ValueError(
                    f"block {block.name!r} has shape {rows.shape}, expected {view.shape}"
                )
            view[...] = rows
        return cls(space, w)


def refuse_nan(w: np.ndarray) -> None:
    """Refuse weights that are not finite: all scores would be NaN, and predictions meaningless.

    Parameters
    ----------
    w : ndarray

    Raises
    ------
    ValueError
    """
    # The sum is finite unless an entry is not, or the sum overflows.
    if not (math.isfinite(w.sum()) or np.isfinite(w).all()):
        raise ValueError(
            f"the model holds {int((~np.isfinite(w)).sum())} weights that are NaN or infinite, "
            "expected finite numbers; train it anew, with scaled features"
        )


def split_weights(layout: WeightLayout, w: np.ndarray) -> dict[str, np.ndarray]:
    """Return copies of the blocks of w by name, with the intercept apart from the node block.

    Parameters
    ----------
    layout : WeightLayout
    w : ndarray of shape (dim,)

    Returns
    -------
    dict of str to ndarray
    """
    coef = {}
    for block in layout.blocks:
        view = layout.view(w, block.name)
        if block.kind == "node" and layout.intercept:
            coef[block.name] = view[:-1].copy()
            coef["intercept"] = view[-1].copy()
        else:
            coef[block.name] = view.copy()
    return coef
