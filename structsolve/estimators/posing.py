"""The problem that StructuredSVM solves on given data: structure, space, loss and weights."""

from __future__ import annotations

from typing import Any

from .. import registry
from ..examples.packed import Examples
from ..lp.ask import without_warm_starts
from ..potentials.mercer import Kernel, refuse_own_features
from ..solvers.base import Solver
from ..solvers.problem import Problem
from ..structure.base import Space
from ..structure.pack import learn_space
from ..structure.used_columns import with_used_columns
from ..utils.progress import stage
from .class_weight import weighed
from .fitting import TrainingData, description_of
from .soft_labels import SoftLabels, are_marginals, refuse_marginals


class ProblemMixin:
    """Problems of packed examples, by an estimator's settings."""

    structure: Any
    surrogate: Any
    loss: Any
    class_weight: Any
    oracle: Any
    kernel: Any
    fit_intercept: bool
    penalize_intercept: bool
    checkpoint: Any
    random_state: Any
    verbose: int
    _kernel: Any
    _solver: Any
    _task_loss: Any

    def _posed(self, data: TrainingData) -> Problem:
        """Return the problem of packed examples; it does not depend on alpha."""
        if data.problem is None:
            name, n = type(self).__name__, data.examples.n
            text = f"features, Gram matrices and oracles of {n} examples"
            stage(int(self.verbose), name, text)
            solver = self._solver(data.examples)
            gram = getattr(solver, "uses_gram", True)
            space, examples, kernel = data.space, data.examples, self._kernel()
            # Constraints name columns.
            if kernel is None and not getattr(solver, "constraints", None):
                turns = getattr(solver, "squared_norm", True)
                space, examples = with_used_columns(space, examples, turns)
            data.problem = self._problem(space, examples, kernel, data.dense, gram)
        return data.problem

    def _structure_for(self, y: Any) -> Any:
        """The structure for training on y."""
        return registry.get_structure(self.structure)

    def _learn_space(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> tuple[Space, Examples]:
        structure, intercept = self._structure_for(y), bool(self.fit_intercept)
        if not are_marginals(structure, y):
            space, examples = learn_space(structure, X, y, classes, intercept, sample_weight)
            if self.kernel is None:
                return space.suited_to(examples)
            if self.kernel != "linear":  # the same model as without a kernel
                refuse_own_features(space)
            return space, examples
        if self.class_weight is not None:
            refuse_marginals(structure, y, f"class_weight is {self.class_weight!r}")
        if self._kernel() is not None:
            text = "marginals and kernels exclude each other; leave one of them out"
            refuse_marginals(structure, y, f"kernel is {self.kernel!r}, and {text}")
        soft = SoftLabels(structure, y)
        space, examples = learn_space(
            structure, X, soft.labels, soft.classes, intercept, sample_weight
        )
        soft.settle(examples)
        return space, examples

    def _problem(
        self, space: Any, examples: Any, kernel: Kernel | None, dense: bool, gram: bool = True
    ) -> Problem:
        loss, examples = weighed(
            self.class_weight, self._task_loss(space), self.surrogate, space, examples
        )
        return self._problem_of(space, examples, loss, gram=gram, kernel=kernel, dense=dense)

    def _problem_of(self, space: Any, examples: Any, loss: Any, **how: Any) -> Problem:
        return Problem(
            space,
            examples,
            loss,
            self.surrogate,
            penalize_intercept=self.penalize_intercept,
            oracle=self._training_oracle(),
            **how,
        )

    def _training_oracle(self) -> Any:
        """The oracle for training; with a checkpoint, programs have no warm starts."""
        if self.oracle is None or self.checkpoint is None:
            return self.oracle
        return without_warm_starts(self.oracle)

    def _settings(self, solver: Solver, space: Space) -> dict[str, Any]:
        """The settings that determine training, beside the data and alpha."""
        return {
            "surrogate": description_of(self.surrogate),
            "loss": description_of(self._task_loss(space)),
            "class_weight": description_of(self.class_weight),
            "solver": [solver.name, description_of(solver)],
            "oracle": getattr(self.oracle, "label", self.oracle),
            "intercept": [self.fit_intercept, self.penalize_intercept],
            "random_state": description_of(self.random_state),
            "kernel": description_of(self._kernel()),
        }
