"""The potentials of a problem: linear ones, or those of a Mercer kernel."""

from __future__ import annotations

from typing import Any

from ..examples.packed import Examples
from .linear import LinearPotentials
from .mercer import Kernel
from .mercer_features import KernelDesign, kernel_layout
from .weight_layout import WeightLayout

# Kernel values within its example that are kept for each node, in bytes.
KERNEL_GRAM_BYTES = 8 * 1024


def linear_potentials(
    layout: WeightLayout, examples: Examples, name: str, gram: bool, node_scale: Any = None
) -> LinearPotentials:
    """Return potentials whose w are weights of features; ``name`` is the structure's."""
    examples.check(layout, name)
    budget = 0
    if gram:
        # As much again as the packed features and one dense dual variable of all nodes.
        duals = 8 * int(examples.offsets[-1]) * layout.node_size
        budget = _nbytes(examples.nodes) + duals
    return LinearPotentials(examples, layout, budget, node_scale=node_scale)


def kernel_potentials(
    layout: WeightLayout,
    examples: Examples,
    name: str,
    kernel: Kernel,
    dense: bool,
    penalize_intercept: bool,
    node_scale: Any = None,
) -> LinearPotentials:
    """Return potentials whose w holds dual variables of nodes, and their scores."""
    if layout.node is None or examples.nodes is None:
        raise ValueError(
            f"kernel={kernel.name!r}: structure {name!r} has no node features that "
            "a kernel could compare; use kernel=None"
        )
    if not penalize_intercept:
        raise ValueError(
            "penalize_intercept=False: a kernel model's intercept is a constant 1 added to the "
            "kernel, penalised with it; use fit_intercept=False or penalize_intercept=True"
        )
    examples.check(layout, name, columns=False)
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
