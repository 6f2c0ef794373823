"""Training on batches that are seen once, for StructuredSVM."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..examples.given import listed
from ..solvers.choose import choose_solver
from ..solvers.driver import drive
from ..solvers.run import started
from ..structure.pack import pack
from .common import OnlyIf
from .fitting import description_of
from .soft_labels import refuse_marginals
from .warm_start import refuse_other_classes, stream_start


def _is_incremental(model: Any) -> bool:
    solver = model._solver()
    if not solver.incremental:
        raise AttributeError(
            f"partial_fit needs a solver that does not store examples, found {solver.name!r}: "
            "use solver='sgd'"
        )
    return True


class PartialFitMixin:
    """One pass over a batch of examples."""

    #: The settings of partial_fit()'s run, and the run; None after fit() and in loaded models.
    _stream: Any = None

    @OnlyIf(_is_incremental)
    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Make one pass over a batch of examples ("sgd" and quick solvers without certificate).

        A fitted or loaded model goes on from its weights, "sgd" with the steps of its last record;
        so does a model whose ``alpha`` or ``solver`` changed. To begin anew, clone it. Columns stay
        as they are, since scales need all examples: ``scale_features="auto"`` is False here.

        Parameters
        ----------
        X, y : a batch, as for :meth:`fit`
        classes : sequence, optional
            All classes, at the first call; those of the first batch by default.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        StructuredSVM
            Itself.
        """
        self._check_settings()
        for name in ("early_stopping", "callbacks", "checkpoint"):
            if getattr(self, name):
                raise ValueError(
                    f"{name} is given, but partial_fit makes one pass over a batch: leave it out, "
                    "or use fit"
                )
        if self.scale_features not in (False, "auto"):
            raise ValueError(
                f"scale_features is {self.scale_features!r}, but scales need all examples at once: "
                "use fit, or a scaler with partial_fit before the model"
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight is 'balanced', but counts of classes need all examples at once: use "
                "fit, or a dict of weights"
            )
        X, y = listed(X), listed(y, "y")
        refuse_marginals(registry.get_structure(self.structure), y, "partial_fit takes no others")
        solver = self._solver()
        if self._kernel() is not None:
            solver.check_kernel()
        if self.__sklearn_is_fitted__():
            space, history = self.space_, self.history_
            refuse_other_classes(space, classes)
            self._check_names(X)
            examples = pack(space, X, y, sample_weight)
        else:
            space, examples = self._learn_space(X, y, classes, sample_weight)
            history = []
        problem = self._problem(space, examples, None, False, gram=False)
        settings = [self.alpha, description_of(self.solver)]
        if self._stream is None or self._stream[0] != settings:
            start = stream_start(self, problem)
            self.solver_ = choose_solver(solver, problem)
            self.alpha_: float = start.alpha
            run = started(self.solver_, start)
            run.streams = True
        else:
            run = self._stream[1]
            run.move_to(problem)
        outcome = drive(run, 1, 0.0, description="partial_fit")
        outcome.history[0]["pass"] = len(history) + 1
        outcome.history = history + outcome.history
        if not self.__sklearn_is_fitted__():
            self._remember_names(X)
        self._finish(space, outcome, problem.model(outcome.w), warn=False)
        self._stream = settings, run
        return self
