"""A training problem put together: examples, potentials, structure operators, surrogate.

Everything a plugin may decide is asked here, once; the loops never leave native code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import registry
from .examples import Examples
from .packing import sparsify
from .structure import Space

if TYPE_CHECKING:
    from .kernel import Kernel
    from .potentials import LinearPotentials

# Kernel values within its example that are kept for each node, in bytes.
KERNEL_GRAM_BYTES = 8 * 1024


class Problem:
    """``alpha/2 ||w||^2 + sum_i u_i H_i(w)`` on packed examples, with ``sum u = 1``.

    Parameters
    ----------
    space : Space
    examples : Examples
        With labels.
    loss : str or loss object
    surrogate : str or surrogate object
    penalize_intercept : bool, default=True
        False leaves the last row of the node block out of ``||w||^2``.
    gram : bool, default=True
        Let the potentials keep Gram matrices, up to the size of the packed features and of one
        number per node and state.
    kernel : Kernel, optional
        Compares nodes in place of the inner product of their features; the vector that solvers
        move then holds dual variables (:mod:`structsolve.kernel_design`).
    dense : bool, default=False
        Hand features to the kernel as a dense array, also where packing has made them sparse.
    oracle : str or structsolve.lp.Backend, optional
        A solver of linear programs over the structure's polytope, in place of its own oracle.
    node_scale : array of the node block's shape, optional
        Factors of the node parts' scores; w is penalised before they multiply it.

    Attributes
    ----------
    potentials : LinearPotentials
    surrogate : Surrogate
        The native surrogate; :attr:`oracle`, :attr:`parts` and :attr:`loss` are what it is made of.
    weights : ndarray of shape (n,)
        ``u_i``.
    dim : int
        Length of w.
    penalty : ndarray of shape (dim,) or None
        0 for coordinates left unpenalised, else 1; None when all are penalised.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.problem import Problem
    >>> structure = structsolve.get_structure("multiclass")
    >>> X, y = [[0.0], [1.0]], ["a", "b"]
    >>> space = structure.make_space(X, y)
    >>> problem = Problem(space, space.pack(X, y), loss="hamming")
    >>> problem.n, problem.weights.tolist()
    (2, [0.5, 0.5])
    """

    def __init__(
        self,
        space: Space,
        examples: Examples,
        loss: Any = "hamming",
        surrogate: Any = "margin",
        penalize_intercept: bool = True,
        gram: bool = True,
        kernel: Kernel | None = None,
        dense: bool = False,
        oracle: Any = None,
        node_scale: Any = None,
    ):
        if kernel is None:
            examples = replace(examples, nodes=sparsify(examples.nodes))
        examples = replace(examples, edges=sparsify(examples.edges))
        self.space, self.examples = space, examples
        self.kernel = kernel
        self.potentials = (
            linear_potentials(space, examples, gram, node_scale)
            if kernel is None
            else kernel_potentials(space, examples, kernel, dense, penalize_intercept, node_scale)
        )
        self.oracle = ask_oracle(space, examples, oracle)
        self.parts = ask_parts(space, examples)
        self.loss = ask_loss(space, examples, loss)
        if isinstance(surrogate, str):
            surrogate = registry.default().make("surrogates", surrogate)
        elif not hasattr(surrogate, "bind"):
            raise TypeError(
                f"surrogate is {surrogate!r}, expected a name (known: "
                f"{registry.default().names('surrogates')}) or an object with bind()"
            )
        self.surrogate_name = getattr(surrogate, "name", type(surrogate).__name__)
        self.surrogate = surrogate.bind(self)
        total = examples.sample_weight if examples.sample_weight is not None else None
        weights = np.ones(examples.n) if total is None else np.asarray(total, dtype=np.float64)
        self.weights = weights / weights.sum()
        self.n, self.dim = examples.n, self.potentials.dim
        self.penalty = None
        layout = space.layout
        if not penalize_intercept and layout.intercept and layout.node is not None:
            self.penalty = np.ones(self.dim)
            last = layout.node_start + (layout.node_rows - 1) * layout.node_size
            self.penalty[last : last + layout.node_size] = 0

    def model_weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights that score new examples without ``node_scale``, from a solver's w."""
        scale = self.potentials.node_scale
        return w if scale is None else self._times(w, scale)

    def solver_weights(self, w: np.ndarray) -> np.ndarray:
        """Return what a solver moves where :meth:`model_weights` are w; 0 where the factor is."""
        scale = self.potentials.node_scale
        if scale is None:
            return w
        inverse = np.zeros_like(scale)
        np.divide(1, scale, out=inverse, where=scale > 0)
        return self._times(w, inverse)

    def _times(self, w: np.ndarray, factors: np.ndarray) -> np.ndarray:
        layout = self.potentials.layout
        found = w.copy()
        rows = found[layout.node_start :][: layout.node_rows * layout.node_size]
        rows.reshape(layout.node_rows, layout.node_size)[...] *= factors
        return found

    def regulariser(self, w: np.ndarray, alpha: float) -> float:
        """Return ``alpha/2 ||w||^2`` over the penalised coordinates."""
        if self.penalty is None:
            return 0.5 * alpha * self.potentials.squared_norm(w)
        return 0.5 * alpha * float((w * self.penalty) @ w)

    def bounds(self, w: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, int]:
        """Return upper bounds of every H_i at w, and the oracle calls spent."""
        from .sweep import surrogate_bounds

        return surrogate_bounds(self, w, n_jobs)

    def primal(self, w: np.ndarray, alpha: float, n_jobs: int = 1) -> tuple[float, int]:
        """Return the objective at w (an upper bound where the surrogate is inexact), and calls."""
        bounds, calls = self.bounds(w, n_jobs)
        return self.regulariser(w, alpha) + float(self.weights @ bounds), calls


def linear_potentials(
    space: Space, examples: Examples, gram: bool, node_scale: Any = None
) -> LinearPotentials:
    """Return potentials whose w are weights of features."""
    from .potentials import LinearPotentials

    examples.check(space.layout, space.structure.name)
    budget = 0
    if gram:
        # As much again as the packed features and one dense dual variable of all nodes.
        duals = 8 * int(examples.offsets[-1]) * space.layout.node_size
        budget = _nbytes(examples.nodes) + duals
    return LinearPotentials(examples, space.layout, budget, node_scale=node_scale)


def kernel_potentials(
    space: Space,
    examples: Examples,
    kernel: Kernel,
    dense: bool,
    penalize_intercept: bool,
    node_scale: Any = None,
) -> LinearPotentials:
    """Return potentials whose w holds dual variables of nodes, and their scores."""
    from .kernel_design import KernelDesign, kernel_layout
    from .potentials import LinearPotentials

    layout = space.layout
    if layout.node is None or examples.nodes is None:
        raise ValueError(
            f"kernel={kernel.name!r}: structure {space.structure.name!r} has no node features that "
            "a kernel could compare; use kernel=None"
        )
    if not penalize_intercept:
        raise ValueError(
            "penalize_intercept=False: a kernel model's intercept is a constant 1 added to the "
            "kernel, penalised with it; use fit_intercept=False or penalize_intercept=True"
        )
    examples.check(layout, space.structure.name, columns=False)
    X = kernel.rows(examples.nodes, examples.offsets, dense or kernel.precomputed)
    bias = 1.0 if layout.intercept else 0.0
    design = KernelDesign(X, kernel, examples.offsets, layout.node_size, bias)
    # Whether they are kept must not depend on the cache: the last bits of an answer do on this.
    budget = KERNEL_GRAM_BYTES * X.shape[0]
    inner = kernel_layout(layout, X.shape[0])
    return LinearPotentials(examples, inner, budget, nodes=design, node_scale=node_scale)


def _nbytes(X: Any) -> int:
    if X is None:
        return 0
    if hasattr(X, "indptr"):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def ask_oracle(space: Space, examples: Examples, oracle: Any = None) -> Any:
    """Return the oracle that a plugin gives for this space, or that of an LP backend."""
    from .operators import Oracle

    if oracle is not None:
        from .lp import program_oracle

        return program_oracle(space, examples, oracle)
    return _required("structsolve_oracle", Oracle, space, examples=examples)


def ask_parts(space: Space, examples: Examples) -> Any:
    """Return the parts operator that a plugin gives for this space."""
    from .operators import Parts

    return _required("structsolve_parts", Parts, space, examples=examples)


def ask_loss(space: Space, examples: Examples, loss: Any) -> Any:
    """Return the native loss called ``loss`` against the labels of ``examples``.

    An object with ``bind(space, examples)`` makes its own.
    """
    from .operators import Loss

    if hasattr(loss, "bind"):
        return loss.bind(space, examples)
    found = registry.default().ask(
        "structsolve_loss", Loss, space=space, examples=examples, loss=loss
    )
    if found is None:
        known = getattr(space, "loss_names", None) or registry.default().loss_names()
        raise ValueError(
            f"unknown loss {loss!r} for structure {space.structure.name!r}; known: {list(known)}, "
            "or a CostMatrix or ClassWeights object"
            f"{registry.default().broken_note()}"
        )
    return found


def ask_projection(space: Space, examples: Examples, regularizer: str) -> Any:
    """Return the projection called ``regularizer``."""
    from .operators import Projection

    return _required(
        "structsolve_projection", Projection, space, examples=examples, regularizer=regularizer
    )


def _required(hook: str, expected: type, space: Space, **arguments: Any) -> Any:
    found = registry.default().ask(hook, expected, space=space, **arguments)
    if found is None:
        what = hook.removeprefix("structsolve_")
        name = arguments.get("regularizer")
        detail = f" {name!r}" if name is not None else ""
        # A space may know why there cannot be one.
        why = getattr(space, "no_projection", {}).get(name, "")
        raise ValueError(
            f"no plugin gives the {what}{detail} of structure {space.structure.name!r}"
            f"{': ' if why else ''}{why}{registry.default().broken_note()}"
        )
    return found
