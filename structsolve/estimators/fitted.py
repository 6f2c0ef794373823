"""What a fitted StructuredSVM has beside predictions: its weights, its files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..potentials.mercer_model import KernelModel
from ..potentials.model import LinearModel, Model
from ..utils.suggest import a_type
from . import saving
from .prediction import PredictionMixin


class FittedMixin(PredictionMixin):
    """Weights and files of :class:`~structsolve.StructuredSVM`."""

    def flat_weights(self) -> np.ndarray:
        """Return the weights as one vector, in the form of potentials and solvers.

        Returns
        -------
        ndarray of shape (space_.layout.dim,)

        Raises
        ------
        ValueError
            If the model has no such vector: with a kernel, or with ``sparse=True``.

        Examples
        --------
        >>> from structsolve import StructuredSVM
        >>> model = StructuredSVM("multiclass").fit([[-1.0], [1.0]], ["a", "b"])
        >>> model.flat_weights().shape == (model.space_.layout.dim,)
        True
        """
        self._require_fitted()
        if self._model.weights is None:
            raise ValueError(
                f"{a_type(self._model)} has no vector of weights; give one in the form of "
                "a solver's run"
            )
        return self._model.weights.copy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`structsolve.load` reads; no pickle inside.

        The file appears at once or not at all. Callbacks and the checkpoint path are left out.

        Parameters
        ----------
        path : path

        Raises
        ------
        ValueError
            The message names a parameter that only pickle could save.
        """
        self._require_fitted()
        saving.save(self, path)

    @classmethod
    def from_file(
        cls, meta: dict[str, Any], arrays: dict[str, np.ndarray], kernel: Any = None
    ) -> Any:
        """Return the model of a file, from its contents; :func:`structsolve.load` calls it.

        Parameters
        ----------
        meta : dict
            The file's numbers and names.
        arrays : dict of str to ndarray
        kernel : callable, optional
            The kernel of a model trained with a function.

        Returns
        -------
        StructuredSVM

        Raises
        ------
        ValueError
            If parts of the file do not fit together.
        """
        return saving.restore(cls, meta, arrays, kernel)

    #: Kinds of learned models that its files hold.
    _models: tuple[type[Model], ...] = (LinearModel, KernelModel)
    #: Fitted attributes that files keep beside the weights: arrays of one number per node part.
    _extras: tuple[str, ...] = ()

    def _extra_arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in self._extras}

    def _take_extra_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        for name in self._extras:
            if arrays[name].shape != self.space_.layout.node.shape:
                raise ValueError(
                    f"{name} has shape {arrays[name].shape}, expected "
                    f"{self.space_.layout.node.shape}"
                )
            setattr(self, name, arrays[name])

    def _become_fitted(self, space: Any, model: Model) -> None:
        for name in ("support_", "dual_coef_", "support_vectors_", "gamma_", "factor_"):
            self.__dict__.pop(name, None)
        self.space_, self._model, self._stream = space, model, None
        self.__dict__.update(model.attributes())
        self._forget_operators()
        if hasattr(space, "classes_"):
            self.classes_ = space.classes_
        if space.layout.node is not None:
            # Spaces that expand features store the original number.
            self.n_features_in_ = getattr(space, "n_features", space.layout.n_features)
