"""The predicting half of LatentSVM: labels are those of the best hidden states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structsolve.estimators.common import mean_score
from structsolve.estimators.fitted import FittedMixin
from structsolve.examples.packed import Examples
from structsolve.plugins.latent.states import has_states, numbers_of, of_classes, owners
from structsolve.structure.ask import ask_loss, make_layout


class HiddenPredictionMixin(FittedMixin):
    """Prediction of states, and of their classes."""

    @property
    def state_classes_(self) -> np.ndarray:
        """The class of each state."""
        return self.space_.classes_

    @property
    def n_hidden_(self) -> np.ndarray:
        """The hidden states of each class."""
        return np.bincount(owners(self.space_))

    def predict_hidden(self, X: Any, allowed: Any = None, forbidden: Any = None) -> Any:
        """Return the states of the best label of every example.

        Parameters
        ----------
        X : as for ``fit``
        allowed, forbidden : as for ``predict``
            Masks of classes.

        Returns
        -------
        In the form of ``y``, numbers of states; ``predict`` returns their classes, which are in
        ``state_classes_``.
        """
        examples, dense = self._pack(X)
        labels = self._best_labels(self._model, self.space_, examples, dense, allowed, forbidden)
        return numbers_of(self.space_).unpack(labels, examples)

    def _become_fitted(self, space: Any, model: Any) -> None:
        super()._become_fitted(space, model)
        if has_states(space):
            self.classes_ = of_classes(space).classes_

    def _state_names(self) -> np.ndarray:
        if not has_states(self.space_) or len(self.classes_) == len(self.state_classes_):
            return self.classes_
        counts = self.n_hidden_
        numbers = np.concatenate([np.arange(n) for n in counts])
        return np.array([f"{c}/{h}" for c, h in zip(self.state_classes_.tolist(), numbers)])

    def _mask(self, space: Any, examples: Examples, allowed: Any, forbidden: Any) -> dict[str, Any]:
        if not has_states(space):
            return super()._mask(space, examples, allowed, forbidden)
        masks = super()._mask(of_classes(space), examples, allowed, forbidden)
        owner, blocks = owners(space), {block.name: block for block in space.layout.blocks}
        for name, mask in masks.items():
            # The rows of nodes or edges come first; other tables belong to the classes.
            axes = blocks[name].axes or ("class",) * len(blocks[name].shape)
            for axis, meaning in enumerate(axes, mask.ndim - len(axes)):
                if meaning == "class":
                    mask = np.take(mask, owner, axis)
            masks[name] = mask
        return masks

    def _refuse_hidden(self, what: str) -> None:
        if has_states(self.space_):
            raise ValueError(
                f"{what}: a label has the states of many; log_partition(X, allowed=...) sums over "
                "the states of its classes, and less log_partition(X) is its log-probability"
            )

    def _by_class(self, rows: np.ndarray, combine: np.ufunc) -> np.ndarray:
        if not has_states(self.space_):
            return rows
        first = np.cumsum(self.n_hidden_) - self.n_hidden_
        return np.asarray(combine.reduceat(rows, first, axis=1))

    def _score(self, model: Any, space: Any, examples: Examples, dense: bool) -> float:
        if not has_states(space):
            return super()._score(model, space, examples, dense)
        labels = self._best_labels(model, space, examples, dense)
        plain, owner = of_classes(space), owners(space).astype(np.int32)
        # Labels unseen in training get one more number.
        truths = np.append(owner, np.int32(len(plain.classes_)))[examples.labels]
        loss = ask_loss(plain, self._task_loss(plain))(make_layout(plain, examples))
        return mean_score(loss, replace(examples, labels=truths), owner[labels])
